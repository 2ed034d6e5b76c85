//! Changes where a team looks at them: GitHub, GitLab, or the log alone.

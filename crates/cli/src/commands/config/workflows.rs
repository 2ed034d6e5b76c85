//! Whether the workflows that hooks name are there, and can be read.

use windlass_engine::nearest;

use super::stuck::Stuck;
use crate::config::{Config, Kind};
use crate::failure::Failure;
use crate::project::Project;
use crate::workflow;

pub fn look(project: &Project, config: &Config) -> Result<Vec<Stuck>, Failure> {
    let known = workflow::all(project)?;
    let ids: Vec<&str> = known.iter().map(|defined| defined.workflow.id.as_str()).collect();
    let missing = |hook: &crate::config::Hook| {
        let Kind::Workflow(id) = &hook.kind else { return None };
        let near = nearest(id, &ids).map(|near| format!("did you mean `{near}`? "));
        (!ids.contains(&id.as_str())).then(|| Stuck {
            task: None,
            message: format!("the hook `{}` runs the workflow `{id}`, and there is none", hook.name),
            remedy: format!("{}`windlass workflow list` names them", near.unwrap_or_default()),
        })
    };
    Ok(config.hooks.iter().filter_map(missing).collect())
}

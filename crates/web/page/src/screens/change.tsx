// One change for review: its checks, its findings, its diff, and what a person can decide.

import { useState } from "preact/hooks";

import { pathSegment } from "../api_client";
import type { ChangeDetails, ChangeSummary, LabelledText } from "../api_types";
import { BacktickText, Badge, FactList, LongText, Panel, RelativeTime, ScreenHeader, TaskLink, ViewContent, WarningNotice } from "../components";
import { BranchNames } from "../components/branch_names";
import { CheckList } from "../components/check_list";
import { DiffView } from "../components/diff_view";
import { type ReviewDraft, useReviewDraft } from "../components/review_draft";
import { ReviewPanel } from "../components/review_panel";
import { useLiveView } from "../event_stream";
import { pluralize } from "../formats";
import { Link, safeExternalUrl } from "../router";
import { mayAnswer, viewer } from "../viewer";

export function ChangeScreen({ id }: { id: string }) {
  const view = useLiveView<ChangeDetails>(`/api/changes/${pathSegment(id)}`, (entry) => entry.task === id);
  const title = view.data?.change.goal ?? `Change of ${id}`;
  return (
    <>
      <ScreenHeader
        title={title}
        documentTitle={`Change of ${id}`}
        note={
          <>
            <Link to="/changes">Changes</Link> / <TaskLink id={id} />
          </>
        }
      />
      <ViewContent view={view}>{(details) => <ChangeReview details={details} onChanged={view.reload} />}</ViewContent>
    </>
  );
}

interface ChangeReviewProps {
  details: ChangeDetails;
  onChanged: () => void;
}

function ChangeReview({ details, onChanged }: ChangeReviewProps) {
  const { change } = details;
  const draft = useReviewDraft(viewer.value?.projectPath ?? "", change.task);
  const [outcome, setOutcome] = useState("");
  const isReviewed = change.state === "open" && mayAnswer();
  const finish = (message: string) => {
    setOutcome(message);
    onChanged();
  };
  return (
    <div class="change-layout">
      <div class="change-main">
        <ChangeFacts change={change} />
        {details.diffProblem !== null && (
          <WarningNotice>
            <BacktickText text={details.diffProblem} />
          </WarningNotice>
        )}
        <FindingList findings={details.findings} />
        <CheckList checks={details.checks} />
        {details.fileDiffs.length > 0 && (
          <DiffView
            files={details.fileDiffs}
            isCut={details.isCut}
            command={`windlass change show ${change.task}`}
            draft={isReviewed ? draft : null}
          />
        )}
        {details.fileDiffs.length === 0 && details.diffProblem === null && <p class="muted">The change has no files.</p>}
        <FactList facts={details.facts} />
        {isReviewed && <ReviewShortcut draft={draft} />}
      </div>
      <aside class="change-side" aria-label="Review" id="review" tabIndex={-1}>
        <ReviewPanel details={details} draft={draft} outcome={outcome} onDone={finish} />
      </aside>
    </div>
  );
}

/** Leads to the review where it stands below the diff. */
function ReviewShortcut({ draft }: { draft: ReviewDraft }) {
  const count = draft.listWrittenComments().length;
  return (
    <a class="button button-primary review-shortcut" href="#review">
      {count === 0 ? "Review" : `Review: ${pluralize(count, "comment")}`}
    </a>
  );
}

function ChangeFacts({ change }: { change: ChangeSummary }) {
  const url = safeExternalUrl(change.url);
  return (
    <div class="change-facts">
      <Badge tone={change.tone}>{change.state}</Badge>
      <BranchNames change={change} />
      <span>
        {pluralize(change.commits, "commit")}, opened <RelativeTime at={change.openedAt} />
      </span>
      <Link to={`/why/${pathSegment(change.task)}`}>Why is it like this?</Link>
      {url !== null && (
        <a href={url} target="_blank" rel="noreferrer noopener">
          Open on {new URL(url).host}
        </a>
      )}
    </div>
  );
}

function FindingList({ findings }: { findings: LabelledText[] }) {
  if (findings.length === 0) return null;
  return (
    <Panel title="Findings" count={findings.length} tone="warning" class="finding-panel">
      <ul class="finding-list">
        {findings.map((finding, index) => (
          <li key={index}>
            <strong>{finding.label}</strong>
            <LongText text={finding.text} maxLines={10} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

// What a person decides about a change: send it back with comments, approve, reject or merge it.

import { useEffect, useRef, useState } from "preact/hooks";

import { type ApiError, pathSegment, postJson, toApiError } from "../api_client";
import type { ChangeDetails, ReviewBody, ReviewVerdict } from "../api_types";
import { pluralize } from "../formats";
import { Link } from "../router";
import { mayAnswer, mayManage } from "../viewer";
import { Button, ConfirmButton, ErrorNotice, Panel } from "./index";
import { type DraftComment, lineKey, type ReviewDraft } from "./review_draft";
import { spellInvisible, VisibleName } from "./visible_text";

interface ReviewFormProps {
  details: ChangeDetails;
  draft: ReviewDraft;
  onDone: (message: string) => void;
}

interface ReviewPanelProps extends ReviewFormProps {
  /** What the person has decided; empty before that. */
  outcome: string;
}

export function ReviewPanel({ outcome, ...props }: ReviewPanelProps) {
  const { change } = props.details;
  const isOpen = change.state === "open" && mayAnswer();
  return (
    <Panel title="Review" class="review-panel">
      <div class="stack">
        {isOpen ? <CommentForm {...props} /> : <p class="muted">{describeClosedReview(props.details)}</p>}
        <ReviewOutcome outcome={outcome} task={change.task} />
        {isOpen && <Decisions {...props} />}
        {props.details.hasLanded && props.details.canMerge && mayManage() && <RecordMerge {...props} />}
      </div>
    </Panel>
  );
}

function describeClosedReview({ change, hasLanded }: ChangeDetails): string {
  if (hasLanded) return `The change is already in ${change.base}, but the log has no merge of it.`;
  if (change.state !== "open") return `The change is ${change.state}. There is nothing to decide any more.`;
  return "Your login may look at changes, but not review them.";
}

/** Says what has happened, between the buttons that lead to it. */
function ReviewOutcome({ outcome, task }: { outcome: string; task: string }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The comments above have gone, so the button may stand elsewhere.
    if (outcome !== "") element.current?.scrollIntoView({ block: "nearest" });
  }, [outcome]);
  return (
    <div ref={element} role="status" class="review-outcome">
      {outcome !== "" && (
        <p class="notice notice-good">
          {outcome} <Link to={`/tasks/${pathSegment(task)}`}>Follow {task}</Link>
        </p>
      )}
    </div>
  );
}

function CommentForm(props: ReviewFormProps) {
  const comments = props.draft.comments.value;
  return (
    <>
      {comments.length === 0 ? (
        <p class="muted">Choose a line of the diff to comment on it. The agent gets all comments together.</p>
      ) : (
        <CommentList comments={comments} details={props.details} draft={props.draft} />
      )}
      <SendBackForm {...props} />
    </>
  );
}

interface CommentListProps {
  comments: DraftComment[];
  details: ChangeDetails;
  draft: ReviewDraft;
}

function CommentList({ comments, details, draft }: CommentListProps) {
  return (
    <ul class="comment-list">
      {comments.map((comment) => (
        <li key={lineKey(comment)}>
          <div class="comment-place">
            <code>
              <VisibleName text={comment.path} />:{comment.line}
            </code>
            {comment.side === "old" && <span class="muted"> removed line</span>}
            {!isLinePresent(details, comment) && <span class="tone-warning"> the line has changed since</span>}
          </div>
          <p class="comment-text">{comment.text.value || <span class="muted">no text yet</span>}</p>
          <Button kind="quiet" class="small-button" label={`Delete the comment on ${spellInvisible(comment.path)}:${comment.line}`} onClick={() => draft.removeComment(comment)}>
            Delete
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** Returns whether the diff still has the line that a comment is about. */
function isLinePresent(details: ChangeDetails, comment: DraftComment): boolean {
  const file = details.fileDiffs.find((other) => other.path === comment.path);
  return (file?.hunks ?? []).some((hunk) =>
    hunk.lines.some((line) => {
      const number = comment.side === "old" ? line.oldLine : line.newLine;
      const isSide = (line.kind === "removed") === (comment.side === "old");
      return isSide && number === comment.line && line.text === comment.quoted;
    }),
  );
}

function sendReview(details: ChangeDetails, draft: ReviewDraft, verdict: ReviewVerdict): Promise<unknown> {
  const body: ReviewBody = { verdict, text: draft.general.value.trim(), comments: draft.buildLineComments() };
  return postJson(`/api/changes/${pathSegment(details.change.task)}/review`, body);
}

function SendBackForm({ details, draft, onDone }: ReviewFormProps) {
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const count = draft.listWrittenComments().length;
  const hasText = count > 0 || draft.general.value.trim() !== "";
  const sendBack = async (event: Event) => {
    event.preventDefault();
    if (isBusy || !hasText) return;
    setIsBusy(true);
    setError(null);
    try {
      await sendReview(details, draft, "send_back");
      draft.clear();
      onDone(count > 0 ? `Sent back with ${pluralize(count, "comment")}.` : "Sent back.");
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setIsBusy(false);
  };
  return (
    <form class="text-form" onSubmit={sendBack}>
      <label for="review-text">About the whole change</label>
      <textarea
        id="review-text"
        rows={3}
        placeholder="What should the agent do differently?"
        value={draft.general.value}
        onInput={(event) => (draft.general.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void sendBack(event);
        }}
      />
      <ErrorNotice error={error} />
      <Button kind={details.canMerge && !hasText ? "plain" : "primary"} type="submit" isBusy={isBusy} disabled={!hasText}>
        {count > 0 ? `Send back with ${pluralize(count, "comment")}` : "Send back"}
      </Button>
    </form>
  );
}

/** Records a merge that was made with plain git or on the forge. */
function RecordMerge({ details, onDone }: ReviewFormProps) {
  const { change } = details;
  const record = async () => {
    await postJson(`/api/changes/${pathSegment(change.task)}/merge`, {});
    onDone(`The merge into ${change.base} is recorded.`);
  };
  return (
    <div class="review-decisions">
      <ConfirmButton
        kind="primary"
        question={`The change of ${change.task} is already in ${change.base}: record it?`}
        confirmLabel="Record"
        onConfirm={record}
        details={<p>Nothing is merged again. Windlass runs what follows a merge, and cleans up.</p>}
      >
        Record the merge
      </ConfirmButton>
    </div>
  );
}

function Decisions({ details, draft, onDone }: ReviewFormProps) {
  const { change, answers, canMerge } = details;
  const task = pathSegment(change.task);
  const unsent = draft.listWrittenComments().length;
  const decide = async (verdict: ReviewVerdict, message: string) => {
    await sendReview(details, draft, verdict);
    draft.clear();
    onDone(message);
  };
  const merge = async () => {
    await postJson(`/api/changes/${task}/merge`, {});
    onDone(`Merged into ${change.base}.`);
  };
  const canApprove = answers.includes("approve");
  const canReject = answers.includes("reject");
  if (!canApprove && !canReject && !(canMerge && mayManage())) return null;
  return (
    <div class="review-decisions">
      {canMerge && mayManage() && (
        <ConfirmButton
          kind={unsent > 0 ? "plain" : "primary"}
          question={`Merge ${change.branch} into ${change.base}?`}
          confirmLabel="Merge"
          onConfirm={merge}
          details={
            <p>
              The checks before a merge run first, which can take a while.
              {details.mergeRemote !== null && ` Windlass then pushes ${change.base} to ${details.mergeRemote}.`}
              {unsent > 0 && ` Your ${pluralize(unsent, "comment")} would not be sent.`}
            </p>
          }
        >
          Merge
        </ConfirmButton>
      )}
      {canApprove && (
        <ConfirmButton
          question={`Approve the work on ${change.task}?`}
          confirmLabel="Approve"
          onConfirm={() => decide("approve", "Approved.")}
          details={<p>The task counts as completed, although its gates have not passed.</p>}
        >
          Approve
        </ConfirmButton>
      )}
      {canReject && (
        <ConfirmButton
          kind="danger"
          question={`Reject the work on ${change.task}?`}
          confirmLabel="Reject"
          onConfirm={() => decide("reject", "Rejected.")}
          details={<p>The task counts as failed. It can be reopened later.</p>}
        >
          Reject
        </ConfirmButton>
      )}
    </div>
  );
}

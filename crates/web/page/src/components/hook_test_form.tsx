// Runs one hook with a payload, outside any session.

import { useState } from "preact/hooks";

import { ApiError, pathSegment, postJson, toApiError } from "../api_client";
import type { HookSummary, HookTestReport, TextTone } from "../api_types";
import { formatDuration, spellOut } from "../formats";
import { Badge, BacktickText, Button, ErrorNotice, OutputBlock } from "./index";
import { VisibleText } from "./visible_text";

const OUTCOME_TONES: Record<string, TextTone> = {
  success: "good",
  skip: "faint",
  block: "warning",
  continue: "warning",
  escalate: "warning",
  failure: "bad",
  timed_out: "bad",
};

interface HookTestFormProps {
  hook: HookSummary;
  onClose: () => void;
}

export function HookTestForm({ hook, onClose }: HookTestFormProps) {
  const [text, setText] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [report, setReport] = useState<HookTestReport | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const test = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setError(null);
    setReport(null);
    try {
      const body = { point: hook.point, ...buildPayload(text, hook) };
      setReport(await postJson<HookTestReport>(`/api/hooks/${pathSegment(hook.name)}/test`, body));
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setIsBusy(false);
  };
  return (
    <form class="hook-test text-form" onSubmit={test}>
      <label for={`payload-${hook.point}-${hook.name}`}>Payload as JSON (optional)</label>
      <textarea
        id={`payload-${hook.point}-${hook.name}`}
        class="mono"
        rows={4}
        spellcheck={false}
        placeholder={'{"iteration": 1, "task": {"id": "T12"}}'}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="field-hint">The hook really runs, in the directory of the project. Nothing is recorded, and no agent gets its feedback.</p>
      <ErrorNotice error={error} />
      <div class="row">
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {isBusy ? "Running…" : "Run the hook"}
        </Button>
        <Button kind="quiet" onClick={onClose}>
          Close
        </Button>
      </div>
      <div role="status">{report !== null && <TestReport hook={hook} report={report} />}</div>
    </form>
  );
}

/** Parses the text of the form. The server gets no payload if there is none. A hook of an agent runs only while that agent works. */
function buildPayload(text: string, hook: HookSummary): { payload?: unknown } {
  const scope = hook.agent === null ? {} : { agent: hook.agent, agent_name: hook.agent };
  if (text.trim() === "") return hook.agent === null ? {} : { payload: scope };
  let payload: unknown;
  try {
    payload = JSON.parse(text);
  } catch (thrown) {
    throw new ApiError("the payload is not JSON", {
      status: 0,
      causes: thrown instanceof Error ? thrown.message : null,
      hint: 'write it as `{"iteration": 1}`',
    });
  }
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new ApiError("the payload is not a JSON object", { status: 0, hint: 'write it as `{"iteration": 1}`' });
  }
  return { payload: { ...scope, ...payload } };
}

function TestReport({ hook, report }: { hook: HookSummary; report: HookTestReport }) {
  return (
    <div class="stack hook-report">
      <div class="row">
        {report.outcome !== null && <Badge tone={OUTCOME_TONES[report.outcome] ?? "plain"}>{spellOut(report.outcome)}</Badge>}
        {report.durationMs !== null && <span class="muted">took {formatDuration(report.durationMs)}</span>}
        {report.exitCode !== null && <span class="muted">exit code {report.exitCode}</span>}
        {report.skipReason !== null && (
          <span>
            The hook would not run: <VisibleText text={report.skipReason} />
          </span>
        )}
        {report.message !== null && (
          <span>
            <BacktickText text={report.message} />
          </span>
        )}
      </div>
      {report.command !== null && (
        <p class="mono hook-effect">
          <span class="visually-hidden">Command: </span>
          <VisibleText text={report.command} />
        </p>
      )}
      {report.output === "" && <p class="muted">The program wrote nothing.</p>}
      {report.output && (
        <div>
          <h4>Output</h4>
          <OutputBlock lines={report.output.split("\n")} label={`Output of ${hook.name}`} />
        </div>
      )}
      {report.feedback !== null && (
        <div>
          <h4>What the agent would get</h4>
          <OutputBlock lines={report.feedback.split("\n")} label={`Feedback of ${hook.name}`} />
        </div>
      )}
      {report.hint !== null && (
        <p>
          <BacktickText text={report.hint} />
        </p>
      )}
    </div>
  );
}

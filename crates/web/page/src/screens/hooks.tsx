// The hooks of the configuration: where each is defined, whether it runs, and how its last runs ended.

import { Fragment } from "preact";
import { useState } from "preact/hooks";

import { pathSegment, postJson } from "../api_client";
import type { EventType, HookPage, HookSummary, HookSwitchReport, LogEntry } from "../api_types";
import { BacktickText, Badge, Button, CommandLine, ConfirmButton, EmptyState, RelativeTime, ScreenHeader, ViewContent, WarningNotice } from "../components";
import { HookTestForm } from "../components/hook_test_form";
import { VisibleText } from "../components/visible_text";
import { useLiveView } from "../event_stream";
import { formatCount, formatDuration } from "../formats";
import { mayManage } from "../viewer";

const HOOK_EVENTS: readonly string[] = ["hook_finished", "hook_error", "hook_switched", "config_recorded"] satisfies EventType[];
const FILTERED_COUNT = 8;
/** What the configuration says about the points that most projects use. */
const POINT_NOTES: Record<string, string> = {
  stop: "The gate after every turn of an agent.",
  before_submit: "The gate before an agent's work becomes a change.",
  before_merge: "The gate before a change is merged.",
};

export function HooksScreen() {
  const view = useLiveView<HookPage>("/api/hooks", concernsHooks);
  return (
    <>
      <ScreenHeader title="Hooks" />
      <ViewContent view={view}>{(page) => <HookGroups page={page} onChanged={view.reload} />}</ViewContent>
    </>
  );
}

function concernsHooks(entry: LogEntry): boolean {
  return HOOK_EVENTS.includes(entry.type);
}

function HookGroups({ page, onChanged }: { page: HookPage; onChanged: () => void }) {
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  const shown = page.hooks.filter((hook) => `${hook.point} ${hook.name} ${hook.kind} ${hook.effect}`.toLowerCase().includes(wanted));
  const points = [...new Set(shown.map((hook) => hook.point))];
  return (
    <div class="stack">
      <TrustNotice page={page} />
      {page.hooks.length === 0 && (
        <EmptyState title="The configuration has no hooks" command="windlass config import">
          <p>
            A hook at <code>stop</code> checks the work after every turn, and the agent continues until it passes. Write one under <code>hooks</code> in
            the configuration, or import the hooks of an agent.
          </p>
        </EmptyState>
      )}
      {page.hooks.length >= FILTERED_COUNT && (
        <input
          type="search"
          class="filter-field"
          data-filter=""
          aria-label="Filter hooks"
          placeholder="Filter by point, name or command"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {points.map((point) => (
        <section key={point} class="panel hook-point" aria-labelledby={`point-${point}`}>
          <h2 id={`point-${point}`}>
            <code>{point}</code>
            {POINT_NOTES[point] && <span class="hook-point-note">{POINT_NOTES[point]}</span>}
          </h2>
          <ul class="hook-list">
            {shown
              .filter((hook) => hook.point === point)
              .map((hook) => (
                <li key={hook.name}>
                  <HookCard hook={hook} isTrusted={page.isTrusted} onChanged={onChanged} />
                </li>
              ))}
          </ul>
        </section>
      ))}
      {page.hooks.length > 0 && shown.length === 0 && <p class="muted">No hook matches this filter.</p>}
    </div>
  );
}

function TrustNotice({ page }: { page: HookPage }) {
  if (page.isTrusted) {
    return (
      <p class="muted">
        <Badge tone="good">trusted</Badge> A person has trusted the configuration as it is now.
      </p>
    );
  }
  const reason = page.trust === "changed" ? "The configuration has changed since a person trusted it." : "No person has trusted this configuration yet.";
  return (
    <WarningNotice>
      <p class="notice-title">{reason}</p>
      <p>Its programs do not run until a person trusts it at a terminal. A browser can never do that.</p>
      <CommandLine command="windlass trust" />
    </WarningNotice>
  );
}

/** The agent and the task types that a hook is limited to. */
function ScopeLabels({ hook }: { hook: HookSummary }) {
  const { agent, types } = hook;
  return (
    <>
      {agent !== null && (
        <>
          <span class="label" title="Runs while this agent works">
            agent <VisibleText text={agent} />
          </span>{" "}
        </>
      )}
      {types.map((type) => (
        <Fragment key={type}>
          <span class="label" title="Runs for tasks of this type">
            <VisibleText text={type} />
          </span>{" "}
        </Fragment>
      ))}
    </>
  );
}

interface HookCardProps {
  hook: HookSummary;
  isTrusted: boolean;
  onChanged: () => void;
}

function HookCard({ hook, isTrusted, onChanged }: HookCardProps) {
  const [isTesting, setIsTesting] = useState(false);
  const [report, setReport] = useState<HookSwitchReport | null>(null);
  // Rules of `validation` and built-in hooks have no entry that could be run alone.
  const canTest = mayManage() && isTrusted && hook.isEnabled && hook.definedIn.startsWith("line ");
  const canSwitch = mayManage() && hook.kind !== "validation";
  return (
    <article class={`hook-card${hook.isEnabled ? "" : " is-off"}`} aria-label={hook.name}>
      <div class="hook-title">
        <h3>
          <VisibleText text={hook.name} />
        </h3>
        <p class="muted small">
          <span class="label">{hook.kind}</span> <ScopeLabels hook={hook} />
          <BacktickText text={hook.definedIn} />
        </p>
      </div>
      <div class="hook-contents">
        {hook.effect !== "" && (
          <p class="hook-effect mono">
            <VisibleText text={hook.effect} />
          </p>
        )}
        {hook.inactiveReason !== null && (
          <p class="small">
            <Badge tone="faint">does not run</Badge> <BacktickText text={hook.inactiveReason} />
          </p>
        )}
      </div>
      <div class="hook-runs">
        <LastRun hook={hook} />
        {hook.runs + hook.errors > 0 && <HookFigures hook={hook} />}
      </div>
      {(canSwitch || canTest) && (
        <div class="row hook-actions">
          {canSwitch && <SwitchButton hook={hook} onReport={setReport} onChanged={onChanged} />}
          {canTest && (
            <Button isExpanded={isTesting} label={`Test ${hook.name}`} onClick={() => setIsTesting(!isTesting)}>
              Test…
            </Button>
          )}
        </div>
      )}
      <div role="status" class="hook-notice">
        <SwitchNotice report={report} />
      </div>
      {isTesting && canTest && <HookTestForm hook={hook} onClose={() => setIsTesting(false)} />}
    </article>
  );
}

/** What the server said after a hook was switched on or off. */
function SwitchNotice({ report }: { report: HookSwitchReport | null }) {
  if (report === null) return null;
  const text = report.changed ? "The configuration is written." : "The configuration was so already.";
  if (!report.needsTrust) return <p class="muted small">{text} A person has trusted it as it is now.</p>;
  return (
    <WarningNotice>
      {text} Its programs run again when a person has trusted it: <code>windlass trust</code>
    </WarningNotice>
  );
}

interface SwitchButtonProps {
  hook: HookSummary;
  onReport: (report: HookSwitchReport) => void;
  onChanged: () => void;
}

/** Switches a hook on or off, after it has said what that means for the trust in the configuration. */
function SwitchButton({ hook, onReport, onChanged }: SwitchButtonProps) {
  const verb = hook.isEnabled ? "Disable" : "Enable";
  const flip = async () => {
    const body = { enabled: !hook.isEnabled };
    onReport(await postJson<HookSwitchReport>(`/api/hooks/${pathSegment(hook.name)}/switch`, body));
    onChanged();
  };
  return (
    <ConfirmButton
      label={`${verb} ${hook.name}`}
      question={`${verb} ${hook.name}?`}
      confirmLabel={verb}
      onConfirm={flip}
      details={
        <>
          <p>
            The configuration changes. A person has to trust it again in a terminal before its programs run, unless it becomes what
            that person trusted last.
          </p>
          <CommandLine command="windlass trust" />
        </>
      }
    >
      {verb}
    </ConfirmButton>
  );
}

function LastRun({ hook }: { hook: HookSummary }) {
  if (hook.lastOutcome === null) return hook.isEnabled ? <p class="muted small">has not run yet</p> : null;
  return (
    <p class="small muted">
      <Badge tone={hook.lastTone}>{hook.lastOutcome}</Badge> {hook.lastAt !== null && <RelativeTime at={hook.lastAt} />}
    </p>
  );
}

function HookFigures({ hook }: { hook: HookSummary }) {
  return (
    <dl class="hook-figures">
      <div>
        <dt>Runs</dt>
        <dd>{formatCount(hook.runs)}</dd>
      </div>
      <div>
        <dt title="Runs that found something wrong with the work">Blocks</dt>
        <dd class={hook.blocks > 0 ? "tone-warning" : ""}>{formatCount(hook.blocks)}</dd>
      </div>
      <div>
        <dt title="Runs that failed themselves, timed out or could not start">Errors</dt>
        <dd class={hook.errors > 0 ? "tone-bad" : ""}>{formatCount(hook.errors)}</dd>
      </div>
      <div>
        <dt title="Half of the runs are at most this long">p50</dt>
        <dd>{hook.p50Ms === null ? "–" : formatDuration(hook.p50Ms)}</dd>
      </div>
      <div>
        <dt title="95 % of the runs are at most this long">p95</dt>
        <dd>{hook.p95Ms === null ? "–" : formatDuration(hook.p95Ms)}</dd>
      </div>
    </dl>
  );
}

// The checks of a change, by gate. Output is folded, except for checks that need attention.

import type { CheckResult } from "../api_types";
import { spellOut } from "../formats";
import { BacktickText, Badge, EmptyState, OutputBlock, Panel, SeqLink } from "./index";
import { VisibleText } from "./visible_text";

const GATE_TITLES: Record<string, string> = {
  stop: "After each turn of the agent",
  before_submit: "Before the work is submitted",
  before_merge: "Before the change is merged",
};

export function CheckList({ checks }: { checks: CheckResult[] }) {
  const gates = [...new Set(checks.map((check) => check.gate))];
  const failed = checks.filter((check) => check.needsAttention).length;
  return (
    <Panel title="Checks" count={checks.length} class="check-panel" actions={<CheckSummary failed={failed} total={checks.length} />}>
      {checks.length === 0 && (
        <EmptyState title="No gate has judged this work." command="windlass hooks list">
          <p>
            Hooks at <code>stop</code>, <code>before_submit</code> and <code>before_merge</code> check the work of agents.
          </p>
        </EmptyState>
      )}
      {gates.map((gate) => (
        <section key={gate} class="check-gate" aria-label={GATE_TITLES[gate] ?? spellOut(gate)}>
          <h3>
            {GATE_TITLES[gate] ?? spellOut(gate)} <code>{gate}</code>
          </h3>
          <ul>
            {checks
              .filter((check) => check.gate === gate)
              .map((check) => (
                <li key={check.seq}>
                  <CheckItem check={check} />
                </li>
              ))}
          </ul>
        </section>
      ))}
    </Panel>
  );
}

function CheckSummary({ failed, total }: { failed: number; total: number }) {
  if (total === 0) return null;
  return failed === 0 ? <Badge tone="good">all passed</Badge> : <Badge tone="bad">{`${failed} did not pass`}</Badge>;
}

function CheckItem({ check }: { check: CheckResult }) {
  const heading = (
    <>
      <span class="check-name">
        <VisibleText text={check.hook} />
      </span>
      <Badge tone={check.tone}>{check.outcome}</Badge>
    </>
  );
  const lines = check.output.filter((line, index) => line.trim() !== "" || index > 0);
  const hasMore = check.message !== null || lines.length > 0;
  if (!hasMore) {
    return (
      <div class="check-item check-line">
        {heading}
        <SeqLink seq={check.seq} />
      </div>
    );
  }
  return (
    <details class="check-item" open={check.needsAttention}>
      <summary class="check-line">{heading}</summary>
      <div class="check-details">
        {check.message !== null && (
          <p class="wrap">
            <BacktickText text={check.message} />
          </p>
        )}
        <OutputBlock lines={lines} label={`Output of ${check.hook}`} maxLines={20} />
        <p class="muted">
          Recorded at <SeqLink seq={check.seq} />
        </p>
      </div>
    </details>
  );
}

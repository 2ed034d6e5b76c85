// Budgets: what open sessions have used of their limits, and what is left.

import type { BudgetLimits, BudgetReport, SessionBudget } from "../api_types";
import { formatMoney, formatTokens } from "../formats";
import { Panel, SessionLink, TaskLink } from "./index";
import { VisibleText } from "./visible_text";

export function BudgetPanel({ budgets }: { budgets: BudgetReport }) {
  const { limits, sessions } = budgets;
  return (
    <Panel title="Budgets" class="budget-panel">
      <p class="muted">
        {hasLimits(limits) ? (
          `A new session may use at most ${describeLimits(limits)}.`
        ) : (
          <>
            No budget is set. <code>limits.cost</code> (in US dollars) and <code>limits.tokens</code> in the configuration end a session that
            has used as much.
          </>
        )}
        {hasLimits(limits) && sessions.length === 0 && " No session with a budget is open."}
      </p>
      {sessions.length > 0 && <BudgetTable sessions={sessions} />}
    </Panel>
  );
}

function hasLimits(limits: BudgetLimits): boolean {
  return limits.costUsd !== null || limits.tokens !== null;
}

function describeLimits({ costUsd, tokens }: BudgetLimits): string {
  const parts = [];
  if (costUsd !== null) parts.push(formatMoney(costUsd));
  if (tokens !== null) parts.push(`${formatTokens(tokens)} tokens`);
  return parts.join(" and ");
}

function BudgetTable({ sessions }: { sessions: SessionBudget[] }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Budgets of open sessions">
      <table class="data">
        <thead>
          <tr>
            <th scope="col">Open session</th>
            <th scope="col">Money</th>
            <th scope="col">Tokens</th>
          </tr>
        </thead>
        <tbody>
          {sessions.map(({ session, task, agent, limits, usage }) => (
            <tr key={session}>
              <td>
                <SessionLink name={session} /> {task !== null && <TaskLink id={task} />}
                <p class="muted">
                  <VisibleText text={agent} />
                </p>
              </td>
              <td>
                <BudgetMeter used={usage.costUsd} limit={limits.costUsd} format={formatMoney} />
              </td>
              <td>
                <BudgetMeter used={usage.inputTokens + usage.outputTokens} limit={limits.tokens} format={formatTokens} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface BudgetMeterProps {
  /** Absent if the agent reports nothing. */
  used: number | null;
  limit: number | null;
  format: (amount: number) => string;
}

function BudgetMeter({ used, limit, format }: BudgetMeterProps) {
  if (limit === null) return <span class="muted">{used === null ? "no limit" : `${format(used)}, no limit`}</span>;
  if (used === null) return <span class="muted">not reported, at most {format(limit)}</span>;
  const share = Math.min(1, used / limit);
  return (
    <span class="meter">
      <span class="meter-track" aria-hidden="true">
        <span class="meter-fill" style={{ width: `${share * 100}%` }} />
      </span>
      <span>
        {format(used)} of {format(limit)}, {format(Math.max(0, limit - used))} left
      </span>
    </span>
  );
}

// Tokens, money and time: by day, agent, task and type; durations of hooks; the time that tasks spend in each state.

import type { CostReport, CostRow, UsageTotals } from "../api_types";
import { EmptyState, ScreenHeader, Tabs, ViewContent, WarningNotice } from "../components";
import { BudgetPanel } from "../components/budget_panel";
import { BarList, type ChartTable, DayChart, formatDay, type NamedBar } from "../components/charts";
import { VisibleText } from "../components/visible_text";
import { type LiveView, useLiveView } from "../event_stream";
import { formatCount, formatDuration, formatMoney, formatTokens, pluralize, spellOut } from "../formats";
import { Link, navigate, route } from "../router";

const PERIODS = [
  { key: "7", label: "7 days" },
  { key: "30", label: "30 days" },
  { key: "90", label: "90 days" },
  { key: "365", label: "Year" },
];
const DEFAULT_PERIOD = "30";
/** A phone cannot show more columns than this; then a column is a week. */
const MAX_DAYS = 100;
const DAYS_PER_WEEK = 7;
const USAGE_COLUMNS = ["Tokens read", "Tokens written", "Money", "Turns"];

export function CostScreen() {
  const wanted = route.value.query.get("days");
  const days = PERIODS.some((period) => period.key === wanted) ? (wanted as string) : DEFAULT_PERIOD;
  const view: LiveView<CostReport> = useLiveView<CostReport>(
    `/api/cost?days=${days}`,
    // Until the report names the events that change it, any event may.
    (entry) => view.data?.sourceEvents.some((type) => type === entry.type) ?? true,
  );
  return (
    <>
      <ScreenHeader title="Cost">
        <Tabs label="Period" tabs={PERIODS} selected={days} onSelect={(key) => navigate(`/cost?days=${key}`, { replace: true })} />
      </ScreenHeader>
      <ViewContent view={view}>
        {(report) => (
          <>
            <CostCharts report={report} />
            <BudgetPanel budgets={report.budgets} />
          </>
        )}
      </ViewContent>
    </>
  );
}

function CostCharts({ report }: { report: CostReport }) {
  const { total } = report;
  if (total.turns === 0 && report.hookDurations.length === 0 && report.stateTimes.length === 0) {
    return (
      <EmptyState title="Nothing was used in this period" command="windlass run">
        <p>Tokens and money of each turn appear here as soon as an agent has worked.</p>
      </EmptyState>
    );
  }
  const hasPrices = total.costUsd !== null;
  const hasTokens = countTokens(total) > 0;
  const isByWeek = report.days.length > MAX_DAYS;
  const rows = isByWeek ? groupByWeek(report.days) : report.days;
  const unit = isByWeek ? "week" : "day";
  const table = buildUsageTable(isByWeek ? "Week from" : "Day", rows, formatDay);
  return (
    <>
      {report.isCut && <WarningNotice>The period has too many events: the numbers leave out the oldest ones.</WarningNotice>}
      <TotalTiles total={total} />
      <div class="chart-grid">
        {(hasTokens || !hasPrices) && (
          <DayChart
            title={`Tokens by ${unit}`}
            columns={rows.map((row) => ({
              day: row.key,
              lower: row.usage.inputTokens,
              upper: row.usage.outputTokens,
              text: `${formatTokens(row.usage.inputTokens)} read, ${formatTokens(row.usage.outputTokens)} written`,
            }))}
            lowerName="read by agents (input)"
            upperName="written by agents (output)"
            table={table}
          />
        )}
        {hasPrices && (
          <DayChart
            title={`Money by ${unit}`}
            columns={rows.map((row) => ({
              day: row.key,
              lower: row.usage.costUsd ?? 0,
              text: `${formatMoney(row.usage.costUsd)} in ${pluralize(row.usage.turns, "turn")}`,
            }))}
            formatTick={formatMoneyTick}
            smallestStep={0.01}
            table={table}
          />
        )}
        <div class="chart-column">
          <UsageBars title="By agent" column="Agent" rows={report.agents} />
          <UsageBars title="By type of task" column="Type" rows={report.types} />
          <StateTimeBars report={report} />
        </div>
        <div class="chart-column">
          <UsageBars title="By task" column="Task" rows={report.tasks} hasTasks />
          <HookDurationBars report={report} />
        </div>
      </div>
    </>
  );
}

/** Adds up days by sevens, so that the last week is a whole one. */
function groupByWeek(days: CostRow[]): CostRow[] {
  const weeks: CostRow[] = [];
  for (let end = days.length; end > 0; end -= DAYS_PER_WEEK) {
    const week = days.slice(Math.max(0, end - DAYS_PER_WEEK), end);
    weeks.unshift({ key: week[0]?.key ?? "", usage: addUsage(week.map((day) => day.usage)) });
  }
  return weeks;
}

function addUsage(parts: UsageTotals[]): UsageTotals {
  const prices = parts.flatMap((part) => part.costUsd ?? []);
  const sum = (pick: (part: UsageTotals) => number) => parts.reduce((total, part) => total + pick(part), 0);
  return {
    inputTokens: sum((part) => part.inputTokens),
    outputTokens: sum((part) => part.outputTokens),
    turns: sum((part) => part.turns),
    costUsd: prices.length === 0 ? null : prices.reduce((total, price) => total + price, 0),
  };
}

function formatMoneyTick(dollars: number): string {
  if (dollars === 0) return "$0";
  return dollars >= 1000 ? `$${formatTokens(dollars)}` : `$${dollars.toFixed(dollars < 10 ? 2 : 0)}`;
}

function TotalTiles({ total }: { total: UsageTotals }) {
  return (
    <dl class="total-tiles">
      <Tile name="Money" value={formatMoney(total.costUsd)} note={total.costUsd === null ? "No agent reports a price." : undefined} />
      <Tile name="Tokens read" value={formatTokens(total.inputTokens)} title={formatCount(total.inputTokens)} />
      <Tile name="Tokens written" value={formatTokens(total.outputTokens)} title={formatCount(total.outputTokens)} />
      <Tile name="Turns" value={formatCount(total.turns)} />
    </dl>
  );
}

interface TileProps {
  name: string;
  value: string;
  title?: string;
  note?: string;
}

function Tile({ name, value, title, note }: TileProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd title={title}>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

function listUsageNumbers(usage: UsageTotals): string[] {
  const numbers = [usage.inputTokens, usage.outputTokens].map(formatCount);
  return [...numbers, usage.costUsd === null ? "–" : formatMoney(usage.costUsd), formatCount(usage.turns)];
}

function buildUsageTable(column: string, rows: CostRow[], nameRow: (key: string) => string = String): ChartTable {
  return {
    columns: [column, ...USAGE_COLUMNS],
    rows: rows.map((row) => [nameRow(row.key), ...listUsageNumbers(row.usage)]),
  };
}

interface UsageBarsProps {
  title: string;
  column: string;
  rows: CostRow[];
  /** Whether the name of a row begins with a task. */
  hasTasks?: boolean;
}

function countTokens(usage: UsageTotals): number {
  return usage.inputTokens + usage.outputTokens;
}

/** Returns the lengths of bars, at most 1: tokens, or the money of a row whose agents report no tokens. */
function measureUsage(rows: CostRow[]): number[] {
  const mostTokens = Math.max(...rows.map(({ usage }) => countTokens(usage)));
  const mostMoney = Math.max(...rows.map(({ usage }) => usage.costUsd ?? 0));
  return rows.map(({ usage }) => {
    const tokens = countTokens(usage);
    if (tokens > 0) return tokens / mostTokens;
    return mostMoney > 0 ? (usage.costUsd ?? 0) / mostMoney : 0;
  });
}

function describeAmounts(usage: UsageTotals): string {
  const tokens = countTokens(usage);
  const parts = [];
  if (usage.costUsd !== null) parts.push(formatMoney(usage.costUsd));
  if (tokens > 0) parts.push(`${formatTokens(tokens)} tokens`);
  return parts.join(" · ") || "no usage reported";
}

function UsageBars({ title, column, rows, hasTasks = false }: UsageBarsProps) {
  const lengths = measureUsage(rows);
  const bars = rows.map(({ key, usage }, index): NamedBar => ({
    key,
    title: key,
    name: hasTasks ? <TaskName name={key} /> : <VisibleText text={key || "unknown"} />,
    value: lengths[index] ?? 0,
    text: describeAmounts(usage),
  }));
  const isMixed = rows.some(({ usage }) => countTokens(usage) > 0) && rows.some(({ usage }) => countTokens(usage) === 0 && usage.costUsd !== null);
  return (
    <BarList
      title={title}
      description={isMixed ? "Bars show tokens; without reported tokens, money." : undefined}
      bars={bars}
      table={buildUsageTable(column, rows)}
      empty="Nothing in this period"
    />
  );
}

function TaskName({ name }: { name: string }) {
  const [, id, goal] = /^(T\d+)(.*)$/s.exec(name) ?? [];
  if (id === undefined) return <VisibleText text={name} />;
  return (
    <>
      <Link to={`/tasks/${id}`}>{id}</Link>
      <VisibleText text={goal ?? ""} />
    </>
  );
}

function StateTimeBars({ report }: { report: CostReport }) {
  const rows = [...report.stateTimes].sort((a, b) => b.ms - a.ms);
  const bars = rows.map((row): NamedBar => ({ key: row.state, name: spellOut(row.state), value: row.ms, text: formatDuration(row.ms) }));
  const table = { columns: ["State", "Time"], rows: rows.map((row) => [spellOut(row.state), formatDuration(row.ms)]) };
  return (
    <BarList
      title="Time of tasks by state"
      description="All open tasks together, also those that wait."
      bars={bars}
      table={table}
      empty="No task was open in this period"
    />
  );
}

function HookDurationBars({ report }: { report: CostReport }) {
  const rows = report.hookDurations;
  const bars = rows.map((row): NamedBar => ({
    key: row.hook,
    name: (
      <>
        <VisibleText text={row.hook} /> <span class="muted">({pluralize(row.runs, "run")})</span>
      </>
    ),
    value: row.p50Ms,
    far: row.p95Ms,
    text: `${formatDuration(row.p50Ms)} – ${formatDuration(row.p95Ms)}`,
  }));
  const table = {
    columns: ["Hook", "Runs", "p50", "p95"],
    rows: rows.map((row) => [row.hook, formatCount(row.runs), formatDuration(row.p50Ms), formatDuration(row.p95Ms)]),
  };
  return (
    <BarList
      title="Durations of hooks"
      description="Bar: half of the runs are at most this long (p50). Line to the mark: 95 % (p95)."
      bars={bars}
      table={table}
      empty="No hook has run in this period"
    />
  );
}

// Charts as plain SVG. Each chart has a table with the same numbers behind a switch.
//
// All positions inside a plot are percentages, so that a chart fits any width without being measured.

import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { formatTokens } from "../formats";
import { listAxisTicks } from "./chart_axis";

const PLOT_HEIGHT = 168;
/** The space above the highest grid line, for its label. */
const PLOT_TOP = 8;
const MAX_DAY_LABELS = 4;
/** From this time on, in milliseconds, the labels name months and years instead of days. */
const LONG_SPAN = 200 * 86_400_000;
/** The rows that a list of bars shows before the reader asks for all. */
const SHORT_BAR_COUNT = 8;

/** A table with one row per mark of a chart. The first column names the row. */
export interface ChartTable {
  columns: string[];
  rows: string[][];
}

interface ChartFigureProps {
  title: string;
  /** What the chart shows, for readers who do not see it. */
  description?: string;
  table: ChartTable;
  children: ComponentChildren;
}

/** A titled chart with a switch to its table. */
export function ChartFigure({ title, description, table, children }: ChartFigureProps): JSX.Element {
  const [showsTable, setShowsTable] = useState(false);
  const titleId = useId();
  return (
    <section class="chart-figure" aria-labelledby={titleId}>
      <header class="chart-header">
        <div>
          <h2 id={titleId}>{title}</h2>
          {description && <p class="chart-description">{description}</p>}
        </div>
        <button
          type="button"
          class="chart-switch"
          aria-pressed={showsTable}
          aria-label={`Show “${title}” as a table`}
          onClick={() => setShowsTable(!showsTable)}
        >
          Table
        </button>
      </header>
      {showsTable ? <NumberTable caption={title} table={table} /> : children}
    </section>
  );
}

function NumberTable({ caption, table }: { caption: string; table: ChartTable }): JSX.Element {
  return (
    <div class="chart-table-frame" tabIndex={0} role="region" aria-label={`${caption}, table`}>
      <table class="chart-table">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th scope="col" key={column}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map(([name, ...numbers], index) => (
            <tr key={index}>
              <th scope="row">{name}</th>
              {numbers.map((number, column) => (
                <td key={column}>{number}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** One column of a chart by day. `upper` is stacked on `lower`. */
export interface DayColumn {
  day: string;
  lower: number;
  upper?: number;
  /** The values in words. */
  text: string;
}

interface DayChartProps {
  title: string;
  columns: DayColumn[];
  lowerName?: string;
  upperName?: string;
  formatTick?: (value: number) => string;
  /** The smallest distance of two grid lines: tokens have no fractions. */
  smallestStep?: number;
  table: ChartTable;
}

/** A chart with one column per day. */
export function DayChart(props: DayChartProps): JSX.Element {
  const { title, columns, lowerName, upperName, table } = props;
  const { formatTick = formatTokens, smallestStep = 1 } = props;
  const [chosen, setChosen] = useState<number | null>(null);
  const heights = columns.map((column) => column.lower + (column.upper ?? 0));
  const largest = Math.max(0, ...heights);
  const busiest = heights.indexOf(largest);
  const shown = columns[chosen ?? busiest];
  const ticks = listAxisTicks(largest, smallestStep);
  const chooseAt = (event: JSX.TargetedPointerEvent<SVGSVGElement>): void => {
    const frame = event.currentTarget.getBoundingClientRect();
    const index = Math.floor(((event.clientX - frame.left) / frame.width) * columns.length);
    setChosen(Math.min(columns.length - 1, Math.max(0, index)));
  };
  return (
    <ChartFigure title={title} table={table}>
      <p class="chart-readout">
        {largest > 0 && shown ? (
          <>
            <strong>{formatDay(shown.day)}</strong> {shown.text}
            {chosen === null && <span class="chart-note"> (highest)</span>}
          </>
        ) : (
          "Nothing in this period"
        )}
      </p>
      <div class="day-chart">
        <AxisLabels ticks={ticks} format={formatTick} />
        <svg
          class="day-plot"
          height={PLOT_HEIGHT}
          role="img"
          aria-label={describeColumns(title, columns, busiest, largest)}
          onPointerMove={chooseAt}
          onPointerDown={chooseAt}
          onPointerLeave={(event) => event.pointerType === "mouse" && setChosen(null)}
        >
          <GridLines ticks={ticks} />
          <DayColumns columns={columns} top={ticks[ticks.length - 1] ?? 1} chosen={chosen} />
        </svg>
        <DayLabels days={columns.map((column) => column.day)} />
      </div>
      {upperName && lowerName && (
        <ul class="chart-legend">
          <li>
            <LegendSwatch name="lower" /> {lowerName}
          </li>
          <li>
            <LegendSwatch name="upper" /> {upperName}
          </li>
        </ul>
      )}
    </ChartFigure>
  );
}

function describeColumns(title: string, columns: DayColumn[], busiest: number, largest: number): string {
  const most = columns[busiest];
  const summary = largest > 0 && most ? `Highest on ${formatDay(most.day)}: ${most.text}.` : "Nothing in this period.";
  return `${title}, ${columns.length} columns. ${summary} The table has all numbers.`;
}

/** Returns the distance of a value from the top of a plot. */
function plotY(value: number, top: number): number {
  return PLOT_TOP + (1 - value / top) * (PLOT_HEIGHT - PLOT_TOP);
}

function AxisLabels({ ticks, format }: { ticks: number[]; format: (value: number) => string }): JSX.Element {
  const top = ticks[ticks.length - 1] ?? 1;
  return (
    <div class="axis-labels" aria-hidden="true" style={{ height: `${PLOT_HEIGHT}px` }}>
      {ticks.map((tick) => (
        <span key={tick} style={{ top: `${plotY(tick, top)}px` }}>
          {format(tick)}
        </span>
      ))}
      {/* The longest label gives the column its width. */}
      <span class="axis-width">{ticks.map(format).reduce((a, b) => (b.length > a.length ? b : a), "")}</span>
    </div>
  );
}

function GridLines({ ticks }: { ticks: number[] }): JSX.Element {
  const top = ticks[ticks.length - 1] ?? 1;
  return (
    <g class="grid-lines">
      {ticks.map((tick) => {
        const y = Math.min(PLOT_HEIGHT - 0.5, plotY(tick, top));
        return <line key={tick} x1="0" x2="100%" y1={y} y2={y} class={tick === 0 ? "base-line" : undefined} />;
      })}
    </g>
  );
}

interface DayColumnsProps {
  columns: DayColumn[];
  top: number;
  chosen: number | null;
}

function DayColumns({ columns, top, chosen }: DayColumnsProps): JSX.Element {
  const pattern = useId();
  const step = 100 / columns.length;
  const gap = columns.length > 120 ? 0.1 : 0.22;
  return (
    <>
      <defs>
        <Hatching id={pattern} />
      </defs>
      {columns.map((column, index) => {
        const x = `${(index + gap / 2) * step}%`;
        const width = `${step * (1 - gap)}%`;
        const lowerY = plotY(column.lower, top);
        const upperY = plotY(column.lower + (column.upper ?? 0), top);
        return (
          <g key={column.day}>
            {index === chosen && (
              <rect class="chosen-day" x={`${index * step}%`} width={`${step}%`} y="0" height={PLOT_HEIGHT} />
            )}
            <rect class="bar-lower" x={x} width={width} y={lowerY} height={PLOT_HEIGHT - lowerY} />
            {lowerY > upperY && (
              <rect class="bar-upper" x={x} width={width} y={upperY} height={lowerY - upperY} fill={`url(#${pattern})`} />
            )}
          </g>
        );
      })}
    </>
  );
}

/** Diagonal lines, which differ from a plain colour in black and white too. */
function Hatching({ id }: { id: string }): JSX.Element {
  return (
    <pattern id={id} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="hatching-ground" width="5" height="5" />
      <rect class="hatching-line" width="2.2" height="5" />
    </pattern>
  );
}

function LegendSwatch({ name }: { name: "lower" | "upper" }): JSX.Element {
  const pattern = useId();
  return (
    <svg class="legend-swatch" width="16" height="12" aria-hidden="true">
      <defs>
        <Hatching id={pattern} />
      </defs>
      <rect class={`bar-${name}`} width="16" height="12" rx="2" fill={name === "upper" ? `url(#${pattern})` : undefined} />
    </svg>
  );
}

function DayLabels({ days }: { days: string[] }): JSX.Element {
  const count = Math.min(MAX_DAY_LABELS, days.length);
  const chosen = Array.from({ length: count }, (_, index) =>
    count === 1 ? 0 : Math.round((index * (days.length - 1)) / (count - 1)),
  );
  const span = Date.parse(days[days.length - 1] ?? "") - Date.parse(days[0] ?? "");
  return (
    <div class="day-labels" aria-hidden="true">
      {chosen.map((index) => (
        <span key={index}>{formatDay(days[index] ?? "", span > LONG_SPAN)}</span>
      ))}
    </div>
  );
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Formats a day of the server (`2026-11-17`) without shifting it to the browser's time zone. */
export function formatDay(day: string, onlyMonth = false): string {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day);
  const month = parts && MONTHS[Number(parts[2]) - 1];
  if (!parts || !month) {
    return day;
  }
  return onlyMonth ? `${month} ${parts[1]}` : `${Number(parts[3])} ${month}`;
}

/** A horizontal bar. `far` is a second, larger value, drawn as a thin range behind the bar. */
export interface NamedBar {
  name: ComponentChildren;
  key: string;
  value: number;
  far?: number;
  text: string;
  /** The whole name, where it may be cut. */
  title?: string;
}

interface BarListProps {
  title: string;
  description?: string;
  bars: NamedBar[];
  table: ChartTable;
  empty: string;
}

/** Horizontal bars under their names, the largest first. */
export function BarList({ title, description, bars, table, empty }: BarListProps): JSX.Element {
  const [showsAll, setShowsAll] = useState(false);
  const largest = Math.max(0, ...bars.map((bar) => bar.far ?? bar.value));
  const shown = showsAll ? bars : bars.slice(0, SHORT_BAR_COUNT);
  return (
    <ChartFigure title={title} description={description} table={table}>
      {bars.length === 0 && <p class="chart-readout">{empty}</p>}
      <ul class="bar-list">
        {shown.map((bar) => (
          <li key={bar.key}>
            <span class="bar-name" title={bar.title}>
              {bar.name}
            </span>
            <span class="bar-text">{bar.text}</span>
            <Bar value={bar.value} far={bar.far} largest={largest} />
          </li>
        ))}
      </ul>
      {bars.length > SHORT_BAR_COUNT && (
        <button type="button" class="text-button" onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Show fewer" : `Show all ${bars.length}`}
        </button>
      )}
    </ChartFigure>
  );
}

function Bar({ value, far, largest }: { value: number; far?: number; largest: number }): JSX.Element {
  const percent = (part: number): number => (largest > 0 ? (part / largest) * 100 : 0);
  return (
    <svg class="bar" height="12" aria-hidden="true">
      <rect class="bar-track" width="100%" height="12" rx="3" />
      {far !== undefined && (
        <>
          <line class="bar-range" x1="0" x2={`${percent(far)}%`} y1="6" y2="6" />
          {/* The mark at the end stays inside the plot. */}
          <rect class="bar-end" x={`${Math.min(percent(far), 99.2)}%`} width="3" height="12" transform="translate(-1.5 0)" />
        </>
      )}
      <rect class="bar-lower" width={`${Math.max(percent(value), value > 0 ? 0.4 : 0)}%`} height="12" rx="3" />
    </svg>
  );
}

// The history of a session: a group for each iteration, folded if it went well, and a bar for the time of each item.

import { useEffect, useState } from "preact/hooks";

import type { TimelineGroup, TimelineItem, TimelineItemKind } from "../api_types";
import { BacktickText, Button, Duration, Icon, LongText, OutputBlock, RelativeTime, SeqLink, ToneShape } from "../components";
import { formatClockTime, formatExactTime, pluralize, spellOut } from "../formats";
import { route } from "../router";

const KIND_NAMES: Record<TimelineItemKind, string> = {
  turn: "turn",
  hook: "hook",
  gate: "gate",
  feedback: "feedback",
  wait: "wait",
  message: "message",
  event: "event",
};
/** The bar of an item that took no time is still visible. */
const MIN_BAR_SHARE = 0.012;
/** Groups before these are behind a button, so that a long session opens fast. */
const SHOWN_GROUPS = 30;

/** Returns whether an item is not over. A wait in progress has an end in the future. */
function isInProgress(item: TimelineItem): boolean {
  return item.isPending || (item.kind === "wait" && item.endedAt !== null && item.endedAt > Date.now());
}

interface TimelineProps {
  groups: TimelineGroup[];
  isCut: boolean;
  session: string;
  /** Whether the session goes on. */
  isOpen: boolean;
}

export function Timeline({ groups, isCut, session, isOpen }: TimelineProps) {
  const [showsAll, setShowsAll] = useState(false);
  const shown = showsAll ? groups : groups.slice(-SHOWN_GROUPS);
  const seqs = new Set(shown.flatMap((group) => group.items.flatMap((item) => [item.seq, item.startSeq])));
  const target = route.value.fragment;
  useEffect(() => {
    if (/^item-\d+$/.test(target)) document.getElementById(target)?.scrollIntoView({ block: "center" });
  }, [target]);
  return (
    <div class="timeline">
      {isCut && <p class="muted small">Older events are left out. See them in a terminal: windlass session logs {session}</p>}
      {shown.length < groups.length && (
        <Button onClick={() => setShowsAll(true)}>Show {pluralize(groups.length - shown.length, "older iteration")}</Button>
      )}
      {shown.map((group, index) => (
        <GroupSection
          key={`${group.iteration} ${group.items[0]?.seq ?? 0}`}
          group={group}
          seqs={seqs}
          isLast={index === shown.length - 1}
          isOpen={isOpen}
        />
      ))}
    </div>
  );
}

interface GroupSectionProps {
  group: TimelineGroup;
  /** The positions that this timeline shows. */
  seqs: Set<number>;
  isLast: boolean;
  isOpen: boolean;
}

function GroupSection({ group, seqs, isLast, isOpen }: GroupSectionProps) {
  const marked = group.items.filter((item) => item.needsAttention).length;
  const bad = group.items.some((item) => item.tone === "bad");
  const tone = bad ? "bad" : marked > 0 ? "warning" : isLast && isOpen ? "name" : "good";
  const isCurrent = isLast && isOpen;
  // A wait in progress ends after now, and its bar has to fit.
  const ends = group.items.map((item) => item.endedAt ?? 0);
  const span = { from: group.startedAt, to: Math.max(group.endedAt ?? Date.now(), group.startedAt + 1, ...ends) };
  return (
    <details class="group" open={isLast || marked > 0}>
      <summary class="group-summary">
        <Icon name="chevron" size={18} />
        <ToneShape tone={tone} />
        <span class="group-title">{group.iteration === 0 ? "Start" : `Iteration ${group.iteration}`}</span>
        {group.task !== null && <span class="mono small">{group.task}</span>}
        <span class="muted small">
          {pluralize(group.items.length, "item")}
          {marked > 0 && `, ${marked} to look at`}
          {isCurrent && ", in progress"}
        </span>
        <span class="muted small push-end">
          {group.endedAt !== group.startedAt && <Duration from={group.startedAt} to={group.endedAt} />}
        </span>
      </summary>
      <ol class="items">
        {group.items.map((item) => (
          <li key={item.seq} id={`item-${item.seq}`} class={`item item-${item.kind} item-tone-${item.tone}`} data-pending={isInProgress(item)}>
            {item.startSeq !== item.seq && <span id={`item-${item.startSeq}`} />}
            <ItemContent item={item} seqs={seqs} span={span} />
          </li>
        ))}
      </ol>
    </details>
  );
}

interface ItemContentProps {
  item: TimelineItem;
  seqs: Set<number>;
  span: { from: number; to: number };
}

function ItemContent({ item, seqs, span }: ItemContentProps) {
  const hasMore = item.text !== null || item.evidence.length > 0 || item.details.length > 0;
  const head = (
    <>
      <ToneShape tone={isInProgress(item) ? "plain" : item.tone} />
      <span class="item-kind">{item.kind === "event" ? spellOut(item.event) : KIND_NAMES[item.kind]}</span>
      <span class="item-title">
        <BacktickText text={item.title} />
      </span>
      <ItemBar item={item} span={span} />
      <ItemTime item={item} />
    </>
  );
  if (!hasMore) {
    return (
      <div class="item-head">
        {head}
        <ItemLinks item={item} seqs={seqs} />
      </div>
    );
  }
  return (
    <details open={item.needsAttention || item.kind === "message" || item.kind === "feedback"}>
      <summary class="item-head">
        {head}
        <Icon name="chevron" size={16} />
      </summary>
      <div class="item-body">
        {item.text !== null && <LongText text={item.text} maxLines={14} />}
        {item.details.map((detail, index) => (
          <p key={index} class="small wrap">
            <BacktickText text={detail} />
          </p>
        ))}
        <OutputBlock lines={item.evidence} label={`Evidence: ${item.title.slice(0, 100)}`} maxLines={16} />
        <ItemLinks item={item} seqs={seqs} />
      </div>
    </details>
  );
}

function ItemTime({ item }: { item: TimelineItem }) {
  if (item.kind === "wait" && item.endedAt !== null && isInProgress(item)) {
    return (
      <span class="item-time">
        until{" "}
        <time dateTime={new Date(item.endedAt).toISOString()} title={formatExactTime(item.endedAt)}>
          {formatClockTime(item.endedAt, Date.now())}
        </time>
      </span>
    );
  }
  if (item.isPending && item.kind === "message") return <span class="item-time">waits for the next prompt</span>;
  if (item.isPending) {
    return (
      <span class="item-time">
        for <Duration from={item.startedAt} to={null} />
      </span>
    );
  }
  const took = item.endedAt === null ? 0 : item.endedAt - item.startedAt;
  return (
    <span class="item-time">
      {took > 0 ? <Duration from={item.startedAt} to={item.endedAt} /> : <RelativeTime at={item.startedAt} />}
    </span>
  );
}

/** The time of an item within its iteration. */
function ItemBar({ item, span }: { item: TimelineItem; span: { from: number; to: number } }) {
  const length = span.to - span.from;
  const share = (at: number) => Math.min(1, Math.max(0, (at - span.from) / length));
  const from = Math.min(share(item.startedAt), 1 - MIN_BAR_SHARE);
  const to = Math.max(share(item.endedAt ?? span.to), from + MIN_BAR_SHARE);
  return (
    <span class="item-track" aria-hidden="true" title={formatExactTime(item.startedAt)}>
      <span class="item-bar" style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />
    </span>
  );
}

/** The position of the item, and those of the events that led to it. */
function ItemLinks({ item, seqs }: { item: TimelineItem; seqs: Set<number> }) {
  return (
    <span class="item-links">
      <SeqLink seq={item.seq} />
      {item.relatedSeqs.map((seq) => (
        <span key={seq} class="muted small">
          {item.kind === "feedback" ? "delivers" : "because of"} {seqs.has(seq) ? <a href={`#item-${seq}`} onClick={() => openItem(seq)}>#{seq}</a> : <SeqLink seq={seq} />}
        </span>
      ))}
    </span>
  );
}

/** Opens the folds around an item, so that a link to it leads somewhere. */
function openItem(seq: number): void {
  const element = document.getElementById(`item-${seq}`);
  const folds = [element?.closest("details.group"), element?.querySelector("details")];
  for (const fold of folds) fold?.setAttribute("open", "");
}

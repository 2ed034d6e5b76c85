// Why something is as it is: the facts of the log about one subject, each with its cause.

import { useEffect, useMemo, useState } from "preact/hooks";

import { pathSegment } from "../api_client";
import type { LogEntry, WhyCause, WhyFactView, WhyView } from "../api_types";
import {
  BacktickText,
  Badge,
  Button,
  CommandLine,
  FactList,
  OutputBlock,
  Panel,
  RelativeTime,
  ScreenHeader,
  SeqLink,
  SessionLink,
  Tabs,
  TaskLink,
  ToneShape,
  ViewContent,
} from "../components";
import { useLiveView } from "../event_stream";
import { pluralize, spellOut } from "../formats";
import { Link, navigate, route } from "../router";

type FactChoice = "decisions" | "all";

/** The letters of a cause that a link repeats. */
const SHORT_SENTENCE_LENGTH = 90;

export function WhyScreen({ reference }: { reference: string }) {
  if (reference === "") return <WhyQuestion />;
  return <WhyAnswer key={reference} reference={reference} />;
}

/** Asks for the subject. */
function WhyQuestion() {
  const [name, setName] = useState("");
  const ask = (event: Event) => {
    event.preventDefault();
    if (name.trim() !== "") navigate(`/why/${pathSegment(name.trim())}`);
  };
  return (
    <>
      <ScreenHeader title="Why?" />
      <form class="why-question" onSubmit={ask}>
        <label for="why-name">A task, a session, a stop hook or a conversation</label>
        <div class="row">
          <input id="why-name" type="text" placeholder="T12" data-filter="" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <Button kind="primary" type="submit">
            Explain
          </Button>
        </div>
      </form>
    </>
  );
}

function WhyAnswer({ reference }: { reference: string }) {
  const [subject, setSubject] = useState<{ kind: string; name: string } | null>(null);
  const concerns = (entry: LogEntry) => {
    if (subject?.kind === "task") return entry.task === subject.name;
    if (subject?.kind === "session") return entry.session === subject.name;
    // Events about hooks, series and conversations carry their name only in their data.
    return true;
  };
  const view = useLiveView<WhyView>(`/api/why/${pathSegment(reference)}`, concerns);
  useEffect(() => {
    if (view.data) setSubject({ kind: view.data.kind, name: view.data.name });
  }, [view.data?.kind, view.data?.name]);
  return (
    <>
      <ScreenHeader
        title={`Why ${view.data?.name ?? reference}?`}
        note={
          <>
            <Link to="/why">Why</Link> / {view.data ? <SubjectLink view={view.data} /> : reference}
          </>
        }
      />
      <ViewContent view={view}>{(why) => <WhyReport why={why} />}</ViewContent>
    </>
  );
}

function SubjectLink({ view }: { view: WhyView }) {
  const { kind, name } = view;
  return (
    <>
      {kind} {kind === "task" ? <TaskLink id={name} /> : kind === "session" ? <SessionLink name={name} /> : name}
    </>
  );
}

/** The chain of causes, newest first. Each is a link to its position. */
function CauseChain({ causes, hasMore }: { causes: WhyCause[]; hasMore: boolean }) {
  if (causes.length === 0) return null;
  return (
    <div>
      <h3>Because</h3>
      <ol class="cause-chain">
        {causes.map(({ seq, text }, index) => (
          <li key={index}>
            <SeqLink seq={seq} />{" "}
            <span class="wrap">
              <BacktickText text={text} />
            </span>
          </li>
        ))}
      </ol>
      {hasMore && (
        <p class="muted small">
          More causes are left out. The <Link to="/log">log</Link> has all events.
        </p>
      )}
    </div>
  );
}

function WhyReport({ why }: { why: WhyView }) {
  const decisions = useMemo(() => why.facts.filter((fact) => fact.isDecision), [why.facts]);
  const linked = Number(route.value.fragment);
  const isLinkedHidden = why.facts.some((fact) => fact.seq === linked && !fact.isDecision);
  const [choice, setChoice] = useState<FactChoice>(isLinkedHidden ? "all" : "decisions");
  const shown = choice === "all" ? why.facts : decisions;
  return (
    <div class="why-layout">
      <div class="why-side">
        <Panel title="State" class="why-state">
          <div class="stack">
            <div>
              <Badge tone={why.tone}>{why.state}</Badge>
            </div>
            <FactList facts={why.about} />
            <CauseChain causes={why.causes} hasMore={why.hasMoreCauses} />
            {why.nextCommand !== null && (
              <div class="why-next">
                <h3>Next</h3>
                <CommandLine command={why.nextCommand} />
              </div>
            )}
          </div>
        </Panel>
      </div>
      <section class="why-facts" aria-labelledby="why-facts-title">
        <header class="why-facts-header">
          <h2 id="why-facts-title">What happened, oldest first</h2>
          <Tabs
            label="Facts"
            tabs={[
              { key: "decisions", label: "Decisions", count: decisions.length },
              { key: "all", label: "Everything", count: why.facts.length },
            ]}
            selected={choice}
            onSelect={setChoice}
          />
        </header>
        {why.omitted > 0 && (
          <p class="muted why-omitted">
            {pluralize(why.omitted, "older fact")} left out. The <Link to="/log">log</Link> has all events.
          </p>
        )}
        {shown.length === 0 && <p class="muted">Nothing has been decided yet.</p>}
        <FactChain why={why} shown={shown} linked={linked} showAll={() => setChoice("all")} />
      </section>
    </div>
  );
}

interface FactChainProps {
  why: WhyView;
  shown: WhyFactView[];
  /** The position that the address names. */
  linked: number;
  showAll: () => void;
}

function FactChain({ why, shown, linked, showAll }: FactChainProps) {
  const bySeq = useMemo(() => new Map(why.facts.map((fact) => [fact.seq, fact])), [why.facts]);
  const causes = useMemo(() => collectCauses(bySeq, linked), [bySeq, linked]);
  useEffect(() => {
    if (bySeq.has(linked)) document.getElementById(String(linked))?.scrollIntoView({ block: "center" });
  }, [linked, shown.length]);
  const follow = (seq: number) => {
    if (!shown.some((fact) => fact.seq === seq)) showAll();
  };
  return (
    <ol class="fact-chain">
      {shown.map((fact, index) => {
        const place = describePlace(fact);
        const isNewPlace = place !== "" && place !== describePlace(shown[index - 1]);
        const mark = fact.seq === linked ? " is-linked" : causes.has(fact.seq) ? " is-cause" : "";
        return (
          <li key={fact.seq} id={String(fact.seq)} class={`fact fact-${fact.tone}${fact.isDecision ? "" : " fact-minor"}${mark}`}>
            {isNewPlace && <FactPlace fact={fact} why={why} />}
            <Fact fact={fact} why={why} bySeq={bySeq} onFollow={follow} />
          </li>
        );
      })}
    </ol>
  );
}

/** Returns the positions of all causes of a fact, as far as the page has them. */
function collectCauses(bySeq: Map<number, WhyFactView>, seq: number): Set<number> {
  const causes = new Set<number>();
  const open = [...(bySeq.get(seq)?.causeSeqs ?? [])];
  for (let cause = open.pop(); cause !== undefined; cause = open.pop()) {
    if (causes.has(cause)) continue;
    causes.add(cause);
    open.push(...(bySeq.get(cause)?.causeSeqs ?? []));
  }
  return causes;
}

function describePlace(fact: WhyFactView | undefined): string {
  return fact?.session == null ? "" : `${fact.session} ${fact.iteration ?? ""}`;
}

function FactPlace({ fact, why }: { fact: WhyFactView; why: WhyView }) {
  return (
    <h3 class="fact-place">
      {fact.session !== null && fact.session !== why.name && (
        <>
          Session <SessionLink name={fact.session} />
        </>
      )}
      {fact.iteration !== null && <span> iteration {fact.iteration}</span>}
    </h3>
  );
}

interface FactProps {
  fact: WhyFactView;
  why: WhyView;
  bySeq: Map<number, WhyFactView>;
  onFollow: (seq: number) => void;
}

function Fact({ fact, why, bySeq, onFollow }: FactProps) {
  return (
    <article class="fact-body" aria-label={`Position ${fact.seq}`}>
      <div class="fact-head">
        <ToneShape tone={fact.tone} />
        <code class="fact-type">{spellOut(fact.type)}</code>
        {fact.task !== null && fact.task !== why.name && <TaskLink id={fact.task} />}
        <span class="fact-time muted">
          <RelativeTime at={fact.at} />
        </span>
        <SeqLink seq={fact.seq} />
      </div>
      {fact.sentence !== "" && (
        <p class={`fact-sentence tone-${fact.tone === "faint" ? "plain" : fact.tone}`}>
          <BacktickText text={fact.sentence} />
        </p>
      )}
      {fact.details.map((detail, index) => (
        <p key={index} class="fact-detail">
          <BacktickText text={detail} />
        </p>
      ))}
      <OutputBlock lines={fact.evidence} label={`Evidence of position ${fact.seq}`} maxLines={8} />
      {fact.causeSeqs.map((seq) => (
        <CauseLink key={seq} seq={seq} cause={bySeq.get(seq)} onFollow={onFollow} />
      ))}
    </article>
  );
}

function CauseLink({ seq, cause, onFollow }: { seq: number; cause: WhyFactView | undefined; onFollow: (seq: number) => void }) {
  if (!cause) {
    return (
      <p class="fact-cause">
        because of <SeqLink seq={seq} />
      </p>
    );
  }
  const text = cause.sentence.length > SHORT_SENTENCE_LENGTH ? `${cause.sentence.slice(0, SHORT_SENTENCE_LENGTH)}…` : cause.sentence;
  return (
    <p class="fact-cause">
      because of{" "}
      <Link to={`${route.value.path}#${seq}`} onClick={() => onFollow(seq)}>
        #{seq} {spellOut(cause.type)}
      </Link>
      {text !== "" && (
        <span class="muted">
          : <BacktickText text={text} />
        </span>
      )}
    </p>
  );
}

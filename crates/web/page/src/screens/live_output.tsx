// The output of the turn in progress, as the agent writes it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { pathSegment } from "../api_client";
import { Button, Panel } from "../components";
import { VisibleText } from "../components/visible_text";
import { formatCount } from "../formats";
import { refreshViewer } from "../viewer";

/** Older lines are dropped: the log keeps them, and a long turn must not fill the memory of a phone. */
const MAX_LINES = 1000;
/** How far from the end a person can be and still follow it. */
const FOLLOW_DISTANCE = 48;
const RETRY_DELAY = 2000;

interface OutputState {
  lines: string[];
  dropped: number;
}

const NO_OUTPUT: OutputState = { lines: [], dropped: 0 };

function addLines(before: OutputState, added: string[]): OutputState {
  const lines = [...before.lines, ...added];
  const extra = Math.max(0, lines.length - MAX_LINES);
  return { lines: lines.slice(extra), dropped: before.dropped + extra };
}

/** Follows the output of a session while the page is visible. A browser has few connections to one server. */
function useLiveOutput(name: string): OutputState {
  const [output, setOutput] = useState(NO_OUTPUT);
  useEffect(() => {
    let source: EventSource | null = null;
    let timer: number | undefined;
    let frame = 0;
    let isOver = false;
    let arrived: string[] = [];
    const flush = () => {
      frame = 0;
      const added = arrived;
      arrived = [];
      setOutput((before) => addLines(before, added));
    };
    const reset = () => {
      arrived = [];
      setOutput(NO_OUTPUT);
    };
    const close = () => {
      window.clearTimeout(timer);
      source?.close();
      source = null;
    };
    const open = () => {
      close();
      if (isOver || document.visibilityState === "hidden") return;
      // The server sends the turn from its beginning.
      source = new EventSource(`/api/sessions/${pathSegment(name)}/output`);
      source.addEventListener("turn", reset);
      source.addEventListener("lines", (message: MessageEvent<string>) => {
        arrived.push(...(JSON.parse(message.data) as { lines: string[] }).lines);
        frame ||= window.requestAnimationFrame(flush);
      });
      source.addEventListener("end", () => {
        isOver = true;
        close();
      });
      source.onerror = () => {
        close();
        void refreshViewer();
        timer = window.setTimeout(open, RETRY_DELAY);
      };
    };
    const change = () => (document.visibilityState === "hidden" ? close() : open());
    open();
    document.addEventListener("visibilitychange", change);
    return () => {
      close();
      window.cancelAnimationFrame(frame);
      document.removeEventListener("visibilitychange", change);
    };
  }, [name]);
  return output;
}

export function LiveOutput({ name, isTurnOpen }: { name: string; isTurnOpen: boolean }) {
  const { lines, dropped } = useLiveOutput(name);
  const text = useMemo(() => lines.join("\n"), [lines]);
  const frame = useRef<HTMLPreElement>(null);
  const [isFollowing, setIsFollowing] = useState(true);
  useEffect(() => {
    const element = frame.current;
    if (element !== null && isFollowing) element.scrollTop = element.scrollHeight;
  }, [lines, isFollowing]);
  const watchScroll = () => {
    const element = frame.current;
    if (element === null) return;
    setIsFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < FOLLOW_DISTANCE);
  };
  return (
    <Panel
      title={
        <>
          {isTurnOpen && <span class="live-dot" aria-hidden="true" />}
          {isTurnOpen ? "The agent works" : "Output of the turn"}
        </>
      }
      actions={
        !isFollowing && (
          <Button kind="quiet" class="small-button" onClick={() => setIsFollowing(true)}>
            Follow the end
          </Button>
        )
      }
    >
      {lines.length === 0 ? (
        <p class="muted">{isTurnOpen ? "The agent has written nothing yet." : "No turn is in progress."}</p>
      ) : (
        <div class="output-block live-output">
          <pre ref={frame} tabIndex={0} role="log" aria-live="off" aria-label="Output of the turn in progress" onScroll={watchScroll}>
            {dropped > 0 && `… ${formatCount(dropped)} older lines\n`}
            <VisibleText text={text} />
          </pre>
        </div>
      )}
    </Panel>
  );
}

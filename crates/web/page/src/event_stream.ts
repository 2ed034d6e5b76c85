// The live log of the server, and views that load again when an event concerns them.
//
// Invariants:
// - The page has one stream of events, whatever it shows.
// - A view loads at once for the first event, and then rests from events: for ten times as long as the load took, within
//   MIN_RELOAD_PAUSE and MAX_RELOAD_PAUSE. A request of the person and a new connection wait for no pause.
// - A view never loads twice at the same time.
// - Answers come in order: an older one never replaces a newer one.
// - The position of the page is never after the head of the log: a log can be shorter than before, when its store was restored from a backup.

import { batch, signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { type ApiError, getJson, toApiError } from "./api_client";
import type { LogEntry } from "./api_types";
import { refreshViewer, viewer } from "./viewer";

const MIN_RELOAD_PAUSE = 150;
const MAX_RELOAD_PAUSE = 2000;
/** The pause after a load, as a multiple of the time that the load took. */
const RELOAD_PAUSE_FACTOR = 10;
const FIRST_RETRY_DELAY = 1000;
const MAX_RETRY_DELAY = 15_000;
const PAUSE_AFTER = 15_000;
const PROCESS_CHECK_INTERVAL = 10_000;

export type ConnectionState = "connecting" | "open" | "reconnecting";
type LogListener = (entry: LogEntry) => void;

export const lastEvent = signal<LogEntry | null>(null);
export const connection = signal<ConnectionState>("connecting");
/** Counts how often events may have been missed. Every view loads again with each. */
export const reloads = signal(0);
/** Counts how often the log turned out to be another one than before, with fewer events. */
export const restores = signal(0);

const listeners = new Set<LogListener>();
let source: EventSource | null = null;
let retryTimer: number | undefined;
/** The number of the last time that the stream was opened or closed: what an earlier one began has no effect. */
let attempt = 0;
let retryDelay = FIRST_RETRY_DELAY;
let position: number | null = null;
let wasOpen = false;

/** Calls a listener with every event, in order. Returns how to stop that. */
export function subscribeToLog(listener: LogListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function receiveEntry(message: MessageEvent<string>): void {
  const entry = JSON.parse(message.data) as LogEntry;
  if (position !== null && entry.seq <= position) return;
  position = entry.seq;
  lastEvent.value = entry;
  for (const listener of listeners) listener(entry);
}

function receiveReady(message: MessageEvent<string>): void {
  const { head } = JSON.parse(message.data) as { head: number };
  if (!forgetPositionAfter(head)) {
    position = head;
    if (wasOpen) reloads.value += 1;
  }
  retryDelay = FIRST_RETRY_DELAY;
  connection.value = "open";
  wasOpen = true;
}

/** The server has left out events that this page has not seen. */
function receiveGap(): void {
  reloads.value += 1;
}

/** Goes back to the head of a log that ends before the position. Returns whether it did. */
function forgetPositionAfter(head: number): boolean {
  if (position === null || head >= position) return false;
  position = head;
  batch(() => {
    restores.value += 1;
    reloads.value += 1;
  });
  return true;
}

/** Opens a stream that failed. An EventSource does not tell why, so this asks first: without a login, the page shows the login screen. */
async function retryStream(): Promise<void> {
  const own = attempt;
  const asked = await refreshViewer();
  if (own !== attempt || viewer.peek() === null) return;
  if (asked !== null) forgetPositionAfter(asked.head);
  openEventStream();
}

/** Returns the number of the last event that the page knows. */
export function lastKnownPosition(): number {
  return position ?? 0;
}

/** Names the last event that the page knows, before the first connection. */
export function startAfter(head: number | null): void {
  position = head ?? position;
}

/** Opens the stream, after the last event that this page has seen. */
export function openEventStream(): void {
  closeEventStream();
  const after = position === null ? "" : `?after=${position}`;
  source = new EventSource(`/api/events${after}`);
  source.addEventListener("log", receiveEntry);
  source.addEventListener("ready", receiveReady);
  source.addEventListener("gap", receiveGap);
  source.onerror = () => {
    connection.value = "reconnecting";
    // The browser gives up after some errors, so the page does all retries itself.
    source?.close();
    window.clearTimeout(retryTimer);
    retryTimer = window.setTimeout(() => void retryStream(), retryDelay);
    retryDelay = Math.min(retryDelay * 2, MAX_RETRY_DELAY);
  };
}

export function closeEventStream(): void {
  attempt += 1;
  window.clearTimeout(retryTimer);
  source?.close();
  source = null;
}

/**
 * Closes the stream of a page that is hidden for a while, and opens it again when the person comes back.
 * A browser has six connections to a server over HTTP/1, for all of its tabs.
 */
export function watchVisibility(): void {
  let pauseTimer: number | undefined;
  let isPaused = false;
  const pause = () => {
    if (source === null) return;
    isPaused = true;
    closeEventStream();
  };
  document.addEventListener("visibilitychange", () => {
    window.clearTimeout(pauseTimer);
    if (document.visibilityState === "hidden") {
      pauseTimer = window.setTimeout(pause, PAUSE_AFTER);
    } else if (isPaused || (source !== null && connection.value !== "open")) {
      isPaused = false;
      openEventStream();
    }
  });
  window.addEventListener("online", () => source !== null && openEventStream());
}

/** Loads a view again from time to time while a process runs: a process that dies writes no event. */
export function useProcessWatch(isRunning: boolean, reload: () => void): void {
  useEffect(() => {
    if (!isRunning) return;
    const timer = window.setInterval(() => document.visibilityState === "visible" && reload(), PROCESS_CHECK_INTERVAL);
    return () => window.clearInterval(timer);
  }, [isRunning, reload]);
}

export interface LiveView<T> {
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  reload: () => void;
}

interface ViewState<T> {
  path: string | null;
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
}

/** The loads of a view, one after the other. */
class LoadQueue {
  /** Returns whether the load succeeded. */
  private readonly load: () => Promise<boolean>;
  private timer: number | undefined;
  private isLoading = false;
  private isOutdated = false;
  private isUrgent = false;
  private isStopped = false;
  private restsUntil = 0;

  constructor(load: () => Promise<boolean>) {
    this.load = load;
  }

  /** Loads after the pause. */
  schedule(): void {
    if (this.isLoading) this.isOutdated = true;
    else this.timer ??= window.setTimeout(() => void this.run(), Math.max(0, this.restsUntil - performance.now()));
  }

  /** Loads now, or as soon as the load in progress has ended. */
  loadNow(): void {
    if (this.isLoading) this.isUrgent = true;
    else void this.run();
  }

  stop(): void {
    this.isStopped = true;
    window.clearTimeout(this.timer);
  }

  private async run(): Promise<void> {
    if (this.isStopped) return;
    window.clearTimeout(this.timer);
    this.timer = undefined;
    [this.isLoading, this.isOutdated, this.isUrgent] = [true, false, false];
    const began = performance.now();
    const hasSucceeded = await this.load();
    this.isLoading = false;
    const ended = performance.now();
    // The time of a load that failed tells nothing about the work of the server.
    const pause = hasSucceeded ? RELOAD_PAUSE_FACTOR * (ended - began) : MIN_RELOAD_PAUSE;
    this.restsUntil = ended + Math.min(Math.max(pause, MIN_RELOAD_PAUSE), MAX_RELOAD_PAUSE);
    if (this.isUrgent) void this.run();
    else if (this.isOutdated && !this.isStopped) this.schedule();
  }
}

/** Loads a view, and loads it again when an event concerns it. A null path loads nothing. */
export function useLiveView<T>(path: string | null, concerns: (entry: LogEntry) => boolean): LiveView<T> {
  const [state, setState] = useState<ViewState<T>>({ path, data: null, error: null, isLoading: path !== null });
  const concernsNow = useRef(concerns);
  concernsNow.current = concerns;
  const loader = useRef<() => void>(() => {});
  const reload = useCallback(() => loader.current(), []);

  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    const load = async () => {
      setState((before) => ({ ...before, path, data: before.path === path ? before.data : null, isLoading: true }));
      try {
        const data = await getJson<T>(path, abort.signal);
        if (!abort.signal.aborted) setState({ path, data, error: null, isLoading: false });
        return true;
      } catch (thrown) {
        // The last data stays on the screen beside the error.
        if (!abort.signal.aborted) setState((before) => ({ ...before, error: toApiError(thrown), isLoading: false }));
        return false;
      }
    };
    const queue = new LoadQueue(load);
    loader.current = () => queue.loadNow();
    queue.loadNow();
    const unsubscribeLog = subscribeToLog((entry) => concernsNow.current(entry) && queue.schedule());
    let seenReloads = reloads.peek();
    const unsubscribeReloads = reloads.subscribe((count) => {
      if (count !== seenReloads) queue.loadNow();
      seenReloads = count;
    });
    return () => {
      abort.abort();
      queue.stop();
      unsubscribeLog();
      unsubscribeReloads();
    };
  }, [path]);

  // The data of another path is never shown under this one.
  if (state.path !== path) return { data: null, error: null, isLoading: path !== null, reload };
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

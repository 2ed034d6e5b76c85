// Requests to the server. An error keeps its hint, so that a screen can show both.

import { signal } from "@preact/signals";

import type { CommandNotices } from "./api_types";

/** What the server said besides the result of the last command. */
export const commandNotices = signal<string[]>([]);

/** The body of an answer with an error, as `error.rs` writes it. */
interface ErrorBody {
  error?: string;
  cause?: string | null;
  hint?: string | null;
  code?: string;
  notices?: string[];
}

interface ErrorDetails {
  status: number;
  causes?: string | null;
  hint?: string | null;
  code?: string;
  notices?: string[];
}

export class ApiError extends Error {
  readonly causes: string | null;
  readonly hint: string | null;
  readonly code: string;
  readonly status: number;
  /** What the command said before it failed. */
  readonly notices: string[];

  constructor(message: string, details: ErrorDetails) {
    super(message);
    this.causes = details.causes ?? null;
    this.hint = details.hint ?? null;
    this.code = details.code ?? "unknown";
    this.status = details.status;
    this.notices = details.notices ?? [];
  }
}

/** Turns anything that was thrown into an error that a screen can show. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(thrown instanceof Error ? thrown.message : String(thrown), { status: 0, code: "page" });
}

type LoginListener = () => void;
let loginListener: LoginListener = () => {};

/** Registers what happens when the server no longer knows this browser. */
export function onLoginRequired(listener: LoginListener): void {
  loginListener = listener;
}

export function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return sendRequest<T>(path, { method: "GET", signal: signal ?? null });
}

/** Sends a command. Its notices replace those of the command before. */
export async function postJson<T>(path: string, body: unknown): Promise<T> {
  try {
    const report = await sendRequest<T & CommandNotices>(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    commandNotices.value = report.notices ?? [];
    return report;
  } catch (thrown) {
    commandNotices.value = toApiError(thrown).notices;
    throw thrown;
  }
}

/** Sends commands one after the other until one fails, and shows the notices of all. Calls `onSent` after each that succeeded. */
export async function postEach(path: string, bodies: unknown[], onSent: () => void): Promise<void> {
  const notices = new Set<string>();
  for (const body of bodies) {
    try {
      await postJson(path, body);
      onSent();
    } finally {
      for (const notice of commandNotices.peek()) notices.add(notice);
      commandNotices.value = [...notices];
    }
  }
}

async function sendRequest<T>(path: string, options: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
    throw new ApiError("cannot reach the server", {
      status: 0,
      code: "unreachable",
      hint: "check that `windlass serve` runs, then try again",
    });
  }
  if (response.ok) return (await response.json()) as T;
  const error = await readError(response);
  if (error.code === "not_logged_in") loginListener();
  throw error;
}

async function readError(response: Response): Promise<ApiError> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text) as ErrorBody;
    const message = body.error ?? `the server answered with status ${status}`;
    return new ApiError(message, { ...body, status, causes: body.cause ?? null });
  } catch {
    // A proxy, or the server itself for a body that is too large, answers in plain text.
    return new ApiError(text.trim().slice(0, 300) || `the server answered with status ${status}`, { status });
  }
}

/** Encodes a name as one segment of a path. */
export function pathSegment(name: string): string {
  return encodeURIComponent(name);
}

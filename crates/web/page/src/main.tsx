// Starts the page: the login, the stream of events, and the screen of the path.

import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";

import { type ApiError, onLoginRequired, toApiError } from "./api_client";
import type { NowView } from "./api_types";
import { AppShell } from "./app_shell";
import { ErrorNotice, Spinner } from "./components";
import { CommandNoticeList } from "./components/command_notices";
import { startClock } from "./components/time";
import { concernsLists } from "./concerns";
import { closeEventStream, type LiveView, openEventStream, startAfter, useLiveView, useProcessWatch, watchVisibility } from "./event_stream";
import { type Route, route, watchLocation } from "./router";
import { ChangeScreen } from "./screens/change";
import { ChangesScreen } from "./screens/changes";
import { CostScreen } from "./screens/cost";
import { HooksScreen } from "./screens/hooks";
import { LogScreen } from "./screens/log";
import { LoginScreen } from "./screens/login";
import { NotFoundScreen } from "./screens/not_found";
import { NowScreen } from "./screens/now";
import { QuestionScreen } from "./screens/question";
import { SessionScreen } from "./screens/session";
import { SessionsScreen } from "./screens/sessions";
import { TaskScreen } from "./screens/task";
import { TasksScreen } from "./screens/tasks";
import { WhyScreen } from "./screens/why";
import { applyTheme } from "./theme";
import { isViewerKnown, loadViewer, viewer } from "./viewer";

const HIDDEN_RELOAD_INTERVAL = 60_000;

const startError = signal<ApiError | null>(null);

/** Returns the secret of a link such as `/#code=…`, which logs in or answers a question. */
function findSecret(at: Route, name: string): string | null {
  return new URLSearchParams(at.fragment).get(name);
}

function findQuestionToken(at: Route): string | null {
  const isAnswerPath = at.segments[0] === "answer" && at.fragment !== "" && !at.fragment.includes("=");
  return isAnswerPath ? at.fragment : findSecret(at, "question");
}

async function start(): Promise<void> {
  startError.value = null;
  try {
    await loadViewer();
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error.code !== "not_logged_in") startError.value = error;
  }
  isViewerKnown.value = true;
}

function Page() {
  const question = findQuestionToken(route.value);
  const code = findSecret(route.value, "code");
  useEffect(() => {
    if (question === null && code === null) void start();
  }, []);
  if (question !== null) return <QuestionScreen token={question} />;
  if (code !== null) return <LoginScreen code={code} />;
  if (viewer.value !== null) return <LoggedInPage />;
  if (startError.value !== null) {
    return (
      <main class="lone-page">
        <ErrorNotice error={startError.value} onRetry={() => void start()} />
      </main>
    );
  }
  if (!isViewerKnown.value) {
    return (
      <main class="lone-page">
        <Spinner />
      </main>
    );
  }
  return <LoginScreen code={null} />;
}

function LoggedInPage() {
  const now = useLiveView<NowView>("/api/now", concernsLists);
  useProcessWatch(now.data?.working.some((session) => session.isRunning) ?? false, now.reload);
  useEffect(() => {
    // The views are loaded after this position, so that no event falls between them and the stream.
    startAfter(viewer.peek()?.head ?? null);
    openEventStream();
    // A hidden page has no stream, and its title still tells how many things wait.
    const timer = window.setInterval(() => document.visibilityState === "hidden" && now.reload(), HIDDEN_RELOAD_INTERVAL);
    return () => {
      window.clearInterval(timer);
      closeEventStream();
    };
  }, []);
  return (
    <AppShell now={now}>
      <Screen key={screenKey(route.value)} at={route.value} now={now} />
    </AppShell>
  );
}

/** The log stays as it is from one position to another. Other screens start again with each path. */
function screenKey(at: Route): string {
  return at.segments[0] === "log" ? "log" : at.path;
}

function Screen({ at, now }: { at: Route; now: LiveView<NowView> }) {
  const [first, second] = at.segments;
  switch (first) {
    case undefined:
    case "login":
      return <NowScreen view={now} />;
    case "tasks":
      return second === undefined ? <TasksScreen /> : <TaskScreen id={second} />;
    case "sessions":
      return second === undefined ? <SessionsScreen /> : <SessionScreen name={second} />;
    case "why":
      return <WhyScreen reference={second ?? ""} />;
    case "changes":
      return second === undefined ? <ChangesScreen /> : <ChangeScreen id={second} />;
    case "hooks":
      return <HooksScreen />;
    case "cost":
      return <CostScreen />;
    case "log":
      return <LogScreen position={second !== undefined && /^\d+$/.test(second) ? Number(second) : null} />;
    default:
      return <NotFoundScreen />;
  }
}

applyTheme();
watchLocation();
watchVisibility();
startClock();
onLoginRequired(() => {
  viewer.value = null;
  isViewerKnown.value = true;
});
const root = document.getElementById("app");
if (root !== null) {
  render(
    <>
      <Page />
      <CommandNoticeList />
    </>,
    root,
  );
}

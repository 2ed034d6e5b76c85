// The frame around every screen: navigation, the state of the connection, help, and announcements.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type ApiError, toApiError } from "./api_client";
import type { NowView } from "./api_types";
import { Button, Dialog, ErrorNotice, Icon, type IconName, Logo, Tabs } from "./components";
import { spellInvisible } from "./components/visible_text";
import { connection, type LiveView } from "./event_stream";
import { pluralize } from "./formats";
import { HelpDialog } from "./help_dialog";
import { Link, route, screenTitle } from "./router";
import { listenToShortcuts } from "./shortcuts";
import { chooseTheme, type Theme, theme } from "./theme";
import { logOut, viewer } from "./viewer";

interface Destination {
  path: string;
  name: string;
  icon: IconName;
  /** Whether a phone shows it under "More". */
  isFolded?: boolean;
}

const DESTINATIONS: Destination[] = [
  { path: "/", name: "Now", icon: "now" },
  { path: "/tasks", name: "Tasks", icon: "tasks" },
  { path: "/sessions", name: "Sessions", icon: "sessions" },
  { path: "/changes", name: "Changes", icon: "changes" },
  { path: "/hooks", name: "Hooks", icon: "hooks", isFolded: true },
  { path: "/cost", name: "Cost", icon: "cost", isFolded: true },
  { path: "/log", name: "Log", icon: "log", isFolded: true },
];

const THEME_TABS: { key: Theme; label: string }[] = [
  { key: "system", label: "Auto" },
  { key: "light", label: "Light" },
  { key: "dark", label: "Dark" },
];

/** The connection is reported as lost only after this time, so that a short break shows nothing. */
const RECONNECTING_SHOWN_AFTER = 1200;

interface AppShellProps {
  now: LiveView<NowView>;
  children: ComponentChildren;
}

export function AppShell({ now, children }: AppShellProps) {
  const [isHelpOpen, setIsHelpOpen] = useState(false);
  const [isMoreOpen, setIsMoreOpen] = useState(false);
  const waiting = now.data?.waiting.length ?? 0;
  const project = viewer.value?.project ?? "";
  const title = screenTitle.value;
  useEffect(() => listenToShortcuts(() => setIsHelpOpen(true)), []);
  useEffect(() => setIsMoreOpen(false), [route.value.path]);
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title}${project ? ` · ${project}` : ""}`;
  }, [waiting, title, project]);
  const openHelp = () => {
    setIsMoreOpen(false);
    setIsHelpOpen(true);
  };
  return (
    <div class="shell">
      <a class="skip-link" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <header class="top-bar">
        <Brand />
      </header>
      <Navigation waiting={waiting} openHelp={openHelp} openMore={() => setIsMoreOpen(true)} isMoreOpen={isMoreOpen} />
      <div class="content">
        <ConnectionBar />
        <main id="main" class="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Announcer now={now.data} />
      <HelpDialog isOpen={isHelpOpen} onClose={() => setIsHelpOpen(false)} />
      <Dialog title="More" isOpen={isMoreOpen} onClose={() => setIsMoreOpen(false)}>
        <MoreList openHelp={openHelp} close={() => setIsMoreOpen(false)} />
      </Dialog>
    </div>
  );
}

/** Moves the focus without a change of the address, which is the page's own. */
function focusMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function isCurrent(path: string): boolean {
  const [first = "", second = ""] = route.value.segments;
  if (first === "why") return path === (/^t\d+$/i.test(second) ? "/tasks" : "/sessions");
  return path === `/${first}`;
}

function Brand() {
  const project = viewer.value?.project ?? "Windlass";
  return (
    <Link to="/" class="brand" title={viewer.value?.projectPath} label={`Windlass: ${project}`}>
      <Logo />
      <span class="brand-name">{project}</span>
    </Link>
  );
}

interface NavigationProps {
  waiting: number;
  isMoreOpen: boolean;
  openMore: () => void;
  openHelp: () => void;
}

function Navigation({ waiting, isMoreOpen, openMore, openHelp }: NavigationProps) {
  const isInMore = DESTINATIONS.some(({ path, isFolded }) => isFolded && isCurrent(path));
  return (
    <nav class="navigation" aria-label="Screens">
      <Brand />
      <ul>
        {DESTINATIONS.map(({ path, name, icon, isFolded }) => (
          <li key={path} class={isFolded ? "only-wide" : ""}>
            <Link to={path} class="navigation-link" isCurrent={isCurrent(path)}>
              <Icon name={icon} />
              <span>{name}</span>
              {path === "/" && waiting > 0 && (
                <span class="navigation-count">
                  {waiting}
                  <span class="visually-hidden"> {waiting === 1 ? "waits" : "wait"} for a person</span>
                </span>
              )}
            </Link>
          </li>
        ))}
        <li class="only-narrow">
          <button
            type="button"
            class="navigation-link"
            aria-haspopup="dialog"
            aria-expanded={isMoreOpen}
            aria-current={isInMore ? "page" : undefined}
            onClick={openMore}
          >
            <Icon name="more" />
            <span>More</span>
          </button>
        </li>
      </ul>
      <div class="navigation-foot">
        <ThemeSwitch />
        <div class="row">
          <Button kind="quiet" class="small-button" onClick={openHelp} title="?">
            Help
          </Button>
          <LogOutButton class="button button-quiet small-button" />
        </div>
        <ViewerLine />
      </div>
    </nav>
  );
}

/** A login ends only when the server says so: until then, the button says why not. */
function LogOutButton({ children, ...rest }: { children?: ComponentChildren; class?: string }) {
  const [error, setError] = useState<ApiError | null>(null);
  const end = () => logOut().catch((thrown: unknown) => setError(toApiError(thrown)));
  return (
    <>
      <button type="button" {...rest} onClick={() => void end()}>
        {children}
        Log out
      </button>
      <ErrorNotice error={error} />
    </>
  );
}

function ThemeSwitch() {
  return <Tabs label="Colours" tabs={THEME_TABS} selected={theme.value} onSelect={chooseTheme} />;
}

const ROLE_TEXTS = { look: "may look", answer: "may answer", manage: "may do everything" };

function ViewerLine() {
  const person = viewer.value;
  if (person === null) return null;
  return (
    <p>
      {person.name}, {ROLE_TEXTS[person.role]}
      <br />
      Windlass {person.version}
    </p>
  );
}

function MoreList({ openHelp, close }: { openHelp: () => void; close: () => void }) {
  return (
    <>
      <ul class="more-list">
        {DESTINATIONS.filter(({ isFolded }) => isFolded).map(({ path, name, icon }) => (
          <li key={path}>
            <Link to={path} isCurrent={isCurrent(path)} onClick={close}>
              <Icon name={icon} />
              {name}
            </Link>
          </li>
        ))}
        <li>
          <button type="button" onClick={openHelp}>
            <Icon name="help" />
            Help
          </button>
        </li>
        <li>
          <LogOutButton>
            <Icon name="exit" />
          </LogOutButton>
        </li>
      </ul>
      <div class="row">
        <span class="field-label">Colours</span>
        <ThemeSwitch />
      </div>
      <div class="muted small">
        <ViewerLine />
      </div>
    </>
  );
}

function ConnectionBar() {
  const isDown = connection.value === "reconnecting";
  const [isShown, setIsShown] = useState(false);
  useEffect(() => {
    if (!isDown) return setIsShown(false);
    const timer = window.setTimeout(() => setIsShown(true), RECONNECTING_SHOWN_AFTER);
    return () => window.clearTimeout(timer);
  }, [isDown]);
  return (
    <div role="status">
      {isShown && <p class="connection-bar">Reconnecting to the server. What you see may be out of date.</p>}
    </div>
  );
}

/** Tells readers of the screen about questions that are new since the page was opened. */
function Announcer({ now }: { now: NowView | null }) {
  const known = useRef<Set<string> | null>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    if (now === null) return;
    const keys = now.waiting.map((item) => `${item.kind} ${item.task} ${item.session} ${item.since}`);
    const before = known.current;
    known.current = new Set(keys);
    if (before === null) return;
    const added = now.waiting.filter((_, index) => !before.has(keys[index] ?? ""));
    if (added.length > 0) {
      setText(`${pluralize(added.length, "new question")}: ${added.map((item) => spellInvisible(item.title.slice(0, 120))).join(". ")}`);
    }
  }, [now]);
  return (
    <div class="visually-hidden" aria-live="polite">
      {text}
    </div>
  );
}

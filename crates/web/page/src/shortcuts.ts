// The keys of the page. A person who types a text is left alone.

import { navigate } from "./router";

const SECOND_KEY_TIMEOUT = 1500;

/** The screens behind `g` and a second key. */
export const SCREEN_KEYS = [
  { key: "n", path: "/", name: "Now" },
  { key: "t", path: "/tasks", name: "Tasks" },
  { key: "s", path: "/sessions", name: "Sessions" },
  { key: "c", path: "/changes", name: "Changes" },
  { key: "h", path: "/hooks", name: "Hooks" },
  { key: "o", path: "/cost", name: "Cost" },
  { key: "l", path: "/log", name: "Log" },
] as const;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Listens to the keys of the page. Returns how to stop that. */
export function listenToShortcuts(openHelp: () => void): () => void {
  let goUntil = 0;
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if (document.querySelector("dialog[open]") !== null) return;
    const screen = Date.now() < goUntil ? SCREEN_KEYS.find(({ key }) => key === event.key) : undefined;
    goUntil = 0;
    if (screen !== undefined) {
      event.preventDefault();
      navigate(screen.path);
    } else if (event.key === "g") {
      goUntil = Date.now() + SECOND_KEY_TIMEOUT;
    } else if (event.key === "?") {
      event.preventDefault();
      openHelp();
    } else if (event.key === "/") {
      const filter = document.querySelector<HTMLInputElement>("[data-filter]");
      if (filter === null) return;
      event.preventDefault();
      filter.focus();
      filter.select();
    }
  };
  window.addEventListener("keydown", press);
  return () => window.removeEventListener("keydown", press);
}

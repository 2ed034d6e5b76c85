// The path of the page as a signal. The server sends the same page under every path.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

export interface Route {
  path: string;
  /** The decoded parts of the path, without empty ones. */
  segments: string[];
  query: URLSearchParams;
  /** Without the `#`. */
  fragment: string;
}

export const route = signal<Route>(readLocation());
/** The title of the screen, without the project and the number of things that wait. */
export const screenTitle = signal("Windlass");

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function readLocation(): Route {
  const { pathname, search, hash } = window.location;
  return {
    path: pathname,
    segments: pathname.split("/").filter((segment) => segment !== "").map(decodeSegment),
    query: new URLSearchParams(search),
    fragment: hash.slice(1),
  };
}

export function watchLocation(): void {
  const update = () => {
    route.value = readLocation();
  };
  window.addEventListener("popstate", update);
  window.addEventListener("hashchange", update);
}

/** Opens a path of this page. `replace` adds no entry to the history. */
export function navigate(path: string, options: { replace?: boolean } = {}): void {
  const samePath = path.split(/[?#]/)[0] === route.value.path;
  if (options.replace) window.history.replaceState(null, "", path);
  else window.history.pushState(null, "", path);
  route.value = readLocation();
  if (samePath) return;
  window.scrollTo(0, 0);
  // A reader of the screen hears the new heading instead of nothing.
  document.getElementById("main")?.focus({ preventScroll: true });
}

interface LinkProps {
  to: string;
  children: ComponentChildren;
  class?: string;
  label?: string;
  title?: string;
  isCurrent?: boolean;
  onClick?: () => void;
}

export function Link({ to, children, label, isCurrent, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    // The browser handles a new tab, a new window and a download.
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onClick?.();
    navigate(to);
  };
  return (
    <a href={to} onClick={follow} aria-label={label} aria-current={isCurrent ? "page" : undefined} {...rest}>
      {children}
    </a>
  );
}

/** Names the screen in the title of the document. */
export function useScreenTitle(title: string): void {
  useEffect(() => {
    screenTitle.value = title;
  }, [title]);
}

/** Returns an address from data if a browser may open it. */
export function safeExternalUrl(url: string | null): string | null {
  if (url === null) return null;
  try {
    const parsed = new URL(url);
    return parsed.protocol === "https:" || parsed.protocol === "http:" ? parsed.href : null;
  } catch {
    return null;
  }
}

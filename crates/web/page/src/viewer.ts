// The person who looks at the page, and what this person may do.

import { signal } from "@preact/signals";

import { getJson, postJson } from "./api_client";
import { VIEWER_ROLES, type ViewerInfo, type ViewerRole } from "./api_types";

export const viewer = signal<ViewerInfo | null>(null);
/** Whether the server has said who looks at the page, or that it does not know. */
export const isViewerKnown = signal(false);

const REFRESH_TIMEOUT = 10_000;

function hasRole(role: ViewerRole): boolean {
  const own = viewer.value?.role;
  return own !== undefined && VIEWER_ROLES.indexOf(own) >= VIEWER_ROLES.indexOf(role);
}

/** Returns whether the viewer may answer, review and speak to agents. */
export function mayAnswer(): boolean {
  return hasRole("answer");
}

/** Returns whether the viewer may give every command of the page. */
export function mayManage(): boolean {
  return hasRole("manage");
}

export async function loadViewer(): Promise<void> {
  viewer.value = await getJson<ViewerInfo>("/api/viewer");
}

/** Asks again who looks at the page. Without an answer, nothing changes; a login that ended shows the login screen. */
export async function refreshViewer(): Promise<ViewerInfo | null> {
  try {
    const asked = await getJson<ViewerInfo>("/api/viewer", AbortSignal.timeout(REFRESH_TIMEOUT));
    if (viewer.peek() !== null) viewer.value = asked;
    return asked;
  } catch {
    return null;
  }
}

export async function logIn(code: string): Promise<void> {
  viewer.value = await postJson<ViewerInfo>("/api/login", { code });
  isViewerKnown.value = true;
}

export async function logOut(): Promise<void> {
  await postJson("/api/logout", {});
  viewer.value = null;
}

// Light or dark: the system decides until the person does.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const STORAGE_KEY = "windlass.theme";
const THEMES: Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  const stored = localStorage.getItem(STORAGE_KEY);
  return THEMES.find((known) => known === stored) ?? "system";
}

export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(STORAGE_KEY, chosen);
  applyTheme();
}

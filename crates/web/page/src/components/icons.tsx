// Icons of 24 × 24 units, drawn with lines in the colour of the text.

const PATHS = {
  now: "M4 12a8 8 0 1 0 16 0 8 8 0 1 0-16 0M12 7.5V12l3 2",
  tasks: "M4 6.5l1.5 1.5L8 5M4 12.5l1.5 1.5L8 11M4 18.5 5.5 20 8 17M11.5 6.5H20M11.5 12.5H20M11.5 18.5H20",
  sessions: "M4 5h16v14H4zM7.5 10l2.5 2.5L7.5 15M12.5 15.5h4",
  changes: "M6 8.5v7M6 8.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM6 20.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM18 20.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM18 15.5V9a3 3 0 0 0-3-3h-3m2.5-2.5L12 6l2.5 2.5",
  hooks: "M12 3.5v9a4.5 4.5 0 1 1-4.5 4.5M12 3.5a1.5 1.5 0 1 0 .01 0M7.5 17l-2 2M7.5 17l2 2",
  cost: "M4 20V4M4 20h16M8.5 16v-4M12.5 16V8M16.5 16v-6",
  log: "M5 5h14M5 9.7h14M5 14.3h9M5 19h6",
  more: "M5 7h14M5 12h14M5 17h14",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  help: "M9 9a3 3 0 1 1 4.2 2.75C12.4 12.2 12 12.7 12 13.7M12 17.3v.01",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  chevron: "M9 6l6 6-6 6",
  external: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  exit: "M14 4H5v16h9M10 12h11M17.5 8.5 21 12l-3.5 3.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.8"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** The drum of a windlass with its bars. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <rect class="logo-ground" width="32" height="32" rx="8" />
      <circle cx="16" cy="16" r="7" fill="none" stroke="currentColor" stroke-width="2.6" />
      <path d="M16 4.5v23M4.5 16h23" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" />
    </svg>
  );
}

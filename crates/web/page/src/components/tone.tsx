// The meaning of a piece of text, as a colour and, for those who see no colours, as a shape.

import type { ComponentChildren } from "preact";

import type { TextTone } from "../api_types";
import { spellOut } from "../formats";

interface ToneProps {
  tone: TextTone;
  children: ComponentChildren;
}

export function ToneText({ tone, children }: ToneProps) {
  return <span class={`tone-${tone}`}>{children}</span>;
}

/** Draws a check for good, a triangle for a warning, a cross for bad, a dot for work in progress, else a ring. */
export function ToneShape({ tone }: { tone: TextTone }) {
  return (
    <svg class={`tone-shape tone-${tone}`} viewBox="0 0 16 16" width="12" height="12" aria-hidden="true" focusable="false">
      <ShapePath tone={tone} />
    </svg>
  );
}

function ShapePath({ tone }: { tone: TextTone }) {
  const line = { fill: "none", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round" } as const;
  switch (tone) {
    case "good":
      return <path d="M2.5 8.5 6.5 12.5 13.5 4" {...line} stroke-linejoin="round" />;
    case "warning":
      return <path d="M8 2 15 14H1Z" fill="currentColor" />;
    case "bad":
      return <path d="M3.5 3.5 12.5 12.5M12.5 3.5 3.5 12.5" {...line} />;
    case "name":
    case "strong":
      return <circle cx="8" cy="8" r="5.5" fill="currentColor" />;
    default:
      return <circle cx="8" cy="8" r="5" {...line} />;
  }
}

/** A state in one or two words. */
export function Badge({ tone, children }: ToneProps) {
  return (
    <span class={`badge badge-${tone}`}>
      <ToneShape tone={tone} />
      <span>{typeof children === "string" ? spellOut(children) : children}</span>
    </span>
  );
}

// Long texts and outputs, cut with a way to see all.

import { useId, useState } from "preact/hooks";

import { formatCount } from "../formats";
import { Button } from "./button";
import { BacktickText } from "./notice";
import { VisibleText } from "./visible_text";

const CHARACTERS_PER_LINE = 90;

interface LongTextProps {
  text: string;
  maxLines?: number;
}

/** A text with its line breaks. Only a text that is likely to be too long gets a button. */
export function LongText({ text, maxLines = 6 }: LongTextProps) {
  const [isOpen, setIsOpen] = useState(false);
  const id = useId();
  const lines = text
    .split("\n")
    .reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / CHARACTERS_PER_LINE)), 0);
  const isLong = lines > maxLines + 2;
  return (
    <div class="long-text">
      <div id={id} class="long-text-body" style={isLong && !isOpen ? { WebkitLineClamp: String(maxLines) } : undefined} data-cut={isLong && !isOpen}>
        <BacktickText text={text.replaceAll("\r\n", "\n").trim()} />
      </div>
      {isLong && (
        <Button kind="quiet" class="small-button" isExpanded={isOpen} controls={id} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? "Show less" : "Show all"}
        </Button>
      )}
    </div>
  );
}

interface OutputBlockProps {
  lines: string[];
  /** What the output is, for readers of the screen. */
  label: string;
  maxLines?: number;
  /** Shows the last lines instead of the first ones while it is cut. */
  showsEnd?: boolean;
}

/** The output of a program, in a frame that scrolls sideways. */
export function OutputBlock({ lines, label, maxLines = 12, showsEnd = false }: OutputBlockProps) {
  const [isOpen, setIsOpen] = useState(false);
  if (lines.length === 0) return null;
  const isLong = lines.length > maxLines + 2;
  const cut = showsEnd ? lines.slice(-maxLines) : lines.slice(0, maxLines);
  const shown = isLong && !isOpen ? cut : lines;
  return (
    <div class="output-block">
      <pre tabIndex={0} role="region" aria-label={label}>
        <VisibleText text={shown.join("\n")} />
      </pre>
      {isLong && (
        <Button kind="quiet" class="small-button" isExpanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? "Show less" : `Show all ${formatCount(lines.length)} lines`}
        </Button>
      )}
    </div>
  );
}

// A choice between a few views of the same data.

import { formatCount } from "../formats";

export interface TabOption<K extends string> {
  key: K;
  label: string;
  count?: number;
}

interface TabsProps<K extends string> {
  label: string;
  tabs: TabOption<K>[];
  selected: K;
  onSelect: (key: K) => void;
}

/** A group of switches: the selected one is pressed. */
export function Tabs<K extends string>({ label, tabs, selected, onSelect }: TabsProps<K>) {
  return (
    <div class="tabs" role="group" aria-label={label}>
      {tabs.map((tab) => (
        <button
          key={tab.key}
          type="button"
          class="tab"
          aria-pressed={tab.key === selected}
          onClick={() => onSelect(tab.key)}
        >
          {tab.label}
          {tab.count !== undefined && <span class="count">{formatCount(tab.count)}</span>}
        </button>
      ))}
    </div>
  );
}

// The branch of a change, and the branch that it goes into.

import type { ChangeSummary } from "../api_types";
import { VisibleText } from "./visible_text";

export function BranchNames({ change }: { change: ChangeSummary }) {
  return (
    <span class="branch-names" title={`${change.branch} → ${change.base}`}>
      <code>
        <VisibleText text={change.branch} />
      </code>
      <span aria-hidden="true"> → </span>
      <span class="visually-hidden"> into </span>
      <code>
        <VisibleText text={change.base} />
      </code>
    </span>
  );
}

// The answers of the API. The names and fields are those of the structs in `crates/app/src/views` and `crates/web/src`.

export type Tone = "plain" | "strong" | "faint" | "good" | "warning" | "bad" | "name";
export type Role = "look" | "answer" | "manage";

export interface ViewerInfo {
  name: string;
  role: Role;
  project: string;
  projectPath: string;
  version: string;
  head: number;
}

export interface LabelledText {
  label: string;
  text: string;
}

export interface UsageTotals {
  inputTokens: number;
  outputTokens: number;
  costUsd: number | null;
  turns: number;
}

export type WaitingKind = "gate_question" | "blocked_task" | "failed_task" | "open_change";

export interface WaitingItem {
  kind: WaitingKind;
  task: string | null;
  session: string | null;
  title: string;
  reason: string;
  since: number;
  evidence: string[];
  answers: string[];
}

export interface StateCount {
  state: string;
  tone: Tone;
  count: number;
}

export interface NowView {
  head: number;
  waiting: WaitingItem[];
  working: SessionSummary[];
  next: TaskSummary[];
  counts: StateCount[];
  today: UsageTotals;
  warnings: string[];
}

export interface TaskSummary {
  id: string;
  goal: string;
  state: string;
  tone: Tone;
  type: string | null;
  priority: string;
  labels: string[];
  openDependencies: number;
  session: string | null;
  updatedAt: number;
  hasChange: boolean;
}

export interface TaskPage {
  tasks: TaskSummary[];
  hasMore: boolean;
}

export interface TaskNote {
  at: number;
  author: string;
  kind: string;
  text: string;
}

export interface TaskDetails {
  task: TaskSummary;
  description: string | null;
  facts: LabelledText[];
  sessions: SessionSummary[];
  notes: TaskNote[];
  answers: string[];
  nextCommand: string | null;
}

export interface TaskGraphEdge {
  from: string;
  to: string;
  kind: string;
  isDependency: boolean;
}

export interface TaskGraphView {
  focus: string | null;
  tasks: TaskSummary[];
  edges: TaskGraphEdge[];
  hasMore: boolean;
}

export interface SessionSummary {
  name: string;
  task: string | null;
  goal: string;
  agent: string;
  state: string;
  tone: Tone;
  isRunning: boolean;
  iteration: number;
  maxIterations: number;
  sentBack: number;
  maxSendBacks: number;
  waitsFor: string | null;
  startedAt: number;
  endedAt: number | null;
  usage: UsageTotals;
}

export interface SessionPage {
  sessions: SessionSummary[];
  hasMore: boolean;
}

export type TimelineItemKind = "turn" | "hook" | "gate" | "feedback" | "wait" | "message" | "event";

export interface TimelineItem {
  seq: number;
  kind: TimelineItemKind;
  title: string;
  tone: Tone;
  startedAt: number;
  endedAt: number | null;
  isPending: boolean;
  text: string | null;
  evidence: string[];
  details: string[];
  relatedSeqs: number[];
}

export interface TimelineGroup {
  iteration: number;
  items: TimelineItem[];
  startedAt: number;
  endedAt: number | null;
}

export interface SessionTimeline {
  session: SessionSummary;
  groups: TimelineGroup[];
  pendingFeedback: string[];
  answers: string[];
  omitted: number;
}

export interface WhyFactView {
  seq: number;
  at: number;
  task: string | null;
  session: string | null;
  iteration: number | null;
  type: string;
  tone: Tone;
  sentence: string;
  isDecision: boolean;
  evidence: string[];
  details: string[];
  causeSeq: number | null;
}

export interface WhyView {
  kind: string;
  name: string;
  state: string;
  tone: Tone;
  about: LabelledText[];
  facts: WhyFactView[];
  omitted: number;
  nextCommand: string | null;
}

export interface ChangeSummary {
  task: string;
  goal: string;
  state: string;
  tone: Tone;
  branch: string;
  base: string;
  commits: number;
  files: number;
  url: string | null;
  openedAt: number;
}

export type DiffLineKind = "context" | "added" | "removed";

export interface DiffLine {
  kind: DiffLineKind;
  oldLine: number | null;
  newLine: number | null;
  text: string;
}

export interface DiffHunk {
  header: string;
  lines: DiffLine[];
}

export type FileDiffStatus = "added" | "modified" | "deleted" | "renamed" | "binary" | "too_large";

export interface FileDiff {
  path: string;
  status: FileDiffStatus;
  added: number;
  removed: number;
  hunks: DiffHunk[];
}

export interface CheckResult {
  hook: string;
  gate: string;
  outcome: string;
  tone: Tone;
  message: string | null;
  output: string[];
  seq: number;
}

export interface ChangeDetails {
  change: ChangeSummary;
  fileDiffs: FileDiff[];
  isCut: boolean;
  checks: CheckResult[];
  notices: string[];
  canMerge: boolean;
  answers: string[];
}

export interface LineComment {
  path: string;
  line: number;
  text: string;
}

export type ReviewVerdict = "approve" | "send_back" | "reject";

export interface ReviewBody {
  verdict: ReviewVerdict;
  text?: string;
  comments: LineComment[];
}

export interface HookSummary {
  point: string;
  name: string;
  kind: string;
  effect: string;
  definedIn: string;
  inactiveReason: string | null;
  isEnabled: boolean;
  runs: number;
  failures: number;
  p50Ms: number | null;
  p95Ms: number | null;
  lastOutcome: string | null;
  lastTone: Tone;
  lastAt: number | null;
}

export interface HookPage {
  trust: string;
  isTrusted: boolean;
  hooks: HookSummary[];
}

export interface CostRow {
  key: string;
  usage: UsageTotals;
}

export interface HookDuration {
  hook: string;
  runs: number;
  p50Ms: number;
  p95Ms: number;
}

export interface StateTime {
  state: string;
  ms: number;
}

export interface CostReport {
  days: CostRow[];
  agents: CostRow[];
  tasks: CostRow[];
  types: CostRow[];
  total: UsageTotals;
  hookDurations: HookDuration[];
  stateTimes: StateTime[];
  isCut: boolean;
}

export interface LogEntry {
  seq: number;
  at: number;
  type: string;
  task: string | null;
  session: string | null;
  iteration: number | null;
  depth: number;
  tone: Tone;
  summary: string;
}

export interface LogPage {
  entries: LogEntry[];
  head: number;
}

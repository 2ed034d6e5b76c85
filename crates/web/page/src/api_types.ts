// Generated from the types of the server by the test `page_types_match_server`. Do not edit.

export interface AnswerBody {
  answer: string;
  /** A task, or a session that asks. */
  subject: string;
  text?: string | null;
}

export interface ChangeDetails {
  /** The answers that a person can give now. */
  answers: string[];
  canMerge: boolean;
  change: ChangeSummary;
  checks: CheckResult[];
  fileDiffs: FileDiff[];
  /** Whether a part of the diff was left out. */
  isCut: boolean;
  notices: string[];
}

export interface ChangeSummary {
  base: string;
  branch: string;
  commits: number;
  files: number;
  goal: string;
  openedAt: number;
  state: string;
  task: string;
  tone: TextTone;
  url: string | null;
}

/** The last run of a hook that judged the work. */
export interface CheckResult {
  gate: string;
  hook: string;
  message: string | null;
  outcome: string;
  /** Its feedback, or else the last lines of its recorded output. */
  output: string[];
  seq: number;
  tone: TextTone;
}

export interface CostReport {
  /** The other rows are sorted by tokens, largest first. */
  agents: CostRow[];
  /** Every day of the period, oldest first. */
  days: CostRow[];
  hookDurations: HookDuration[];
  /** Whether older events of the period were left out. */
  isCut: boolean;
  /** The time that tasks spent in each state during the period. */
  stateTimes: StateTime[];
  tasks: CostRow[];
  total: UsageTotals;
  types: CostRow[];
}

export interface CostRow {
  /** A day, an agent, a task or a type. */
  key: string;
  usage: UsageTotals;
}

export interface DependencyBody {
  /** The task that has to be completed first. */
  on: string;
  remove?: boolean;
}

export interface DiffHunk {
  header: string;
  lines: DiffLine[];
}

export interface DiffLine {
  kind: DiffLineKind;
  newLine: number | null;
  oldLine: number | null;
  text: string;
}

export type DiffLineKind = "context" | "added" | "removed";

export interface EditTaskBody {
  addLabels?: string[];
  description?: string | null;
  goal?: string | null;
  priority?: string | null;
  removeLabels?: string[];
}

/** An answer without contents. */
export type EmptyObject = Record<string, unknown>;

/** The body of an answer with an error. */
export interface ErrorBody {
  cause: string | null;
  code: string;
  error: string;
  hint: string | null;
}

export interface FileDiff {
  added: number;
  hunks: DiffHunk[];
  path: string;
  removed: number;
  status: FileDiffStatus;
}

export type FileDiffStatus = "added" | "modified" | "deleted" | "renamed" | "binary" | "too_large" | "symlink" | "mode_changed";

export interface HookDuration {
  hook: string;
  p50Ms: number;
  p95Ms: number;
  runs: number;
}

export interface HookPage {
  hooks: HookSummary[];
  isTrusted: boolean;
  /** The trust in the configuration, in one word. */
  trust: string;
}

export interface HookSummary {
  definedIn: string;
  /** Its command, URL or rules, in one line. */
  effect: string;
  failures: number;
  /** The reason why it never runs. */
  inactiveReason: string | null;
  isEnabled: boolean;
  kind: string;
  lastAt: number | null;
  lastOutcome: string | null;
  lastTone: TextTone;
  name: string;
  p50Ms: number | null;
  p95Ms: number | null;
  point: string;
  runs: number;
  /** The task types that it is bound to; empty if tasks without a type have it too. */
  types: string[];
}

export interface HookSwitchBody {
  enabled: boolean;
}

export interface HookSwitchReport {
  changed: boolean;
  /** Whether a person has to trust the configuration again, at a terminal. */
  needsTrust: boolean;
}

export interface HookTestBody {
  /** A JSON object with the names that conditions use. */
  payload?: unknown;
  /** The point of the hook, such as `stop`. */
  point: string;
}

export interface HookTestReport {
  command: string | null;
  /** The text that the agent would get. */
  feedback: string | null;
  hint: string | null;
  message: string | null;
  outcome: string | null;
  /** The reason why the hook would not run with this payload. */
  skipReason: string | null;
}

/** A text with a label. */
export interface LabelledText {
  label: string;
  text: string;
}

/** A comment on a line of the diff. */
export interface LineComment {
  line: number;
  path: string;
  text: string;
}

/** An event as a row of the log. */
export interface LogEntry {
  at: number;
  /** How many hooks and actions stand between the event and a command. */
  depth: number;
  iteration: number | null;
  seq: number;
  session: string | null;
  summary: string;
  task: string | null;
  tone: TextTone;
  type: string;
}

/** Events of the log, oldest first. */
export interface LogPage {
  entries: LogEntry[];
  /** The position of the last event in the log. */
  head: number;
}

export interface LoginBody {
  code: string;
}

export interface NewTaskBody {
  dependsOn?: string[];
  description?: string | null;
  goal: string;
  labels?: string[];
  priority?: string | null;
  type?: string | null;
}

export interface NowView {
  counts: StateCount[];
  /** Whether more than the items of `waiting` need a person. */
  hasMore: boolean;
  /** The position of the last event. */
  head: number;
  next: TaskSummary[];
  /** The usage since midnight, local time. */
  today: UsageTotals;
  /** Oldest first. */
  waiting: WaitingItem[];
  warnings: string[];
  working: SessionSummary[];
}

/** Lines of the output of a turn in progress. */
export interface OutputLines {
  lines: string[];
}

export interface QuestionAnswerBody {
  answer: string;
  text?: string | null;
}

export interface ReasonBody {
  reason?: string | null;
}

export interface ReviewBody {
  comments?: LineComment[];
  text?: string | null;
  verdict: ReviewVerdict;
}

export type ReviewVerdict = "approve" | "send_back" | "reject";

export interface SayBody {
  session: string;
  text: string;
}

export interface SessionPage {
  hasMore: boolean;
  sessions: SessionSummary[];
}

export interface SessionSummary {
  agent: string;
  endedAt: number | null;
  goal: string;
  /** Whether a living process runs it. */
  isRunning: boolean;
  iteration: number;
  maxIterations: number;
  maxSendBacks: number;
  name: string;
  sentBack: number;
  startedAt: number;
  state: string;
  task: string | null;
  tone: TextTone;
  usage: UsageTotals;
  waitsFor: string | null;
}

export interface SessionTimeline {
  /** The answers that a person can give now. */
  answers: string[];
  groups: TimelineGroup[];
  /** Whether older events were left out. */
  isCut: boolean;
  /** Feedback and messages that no finished turn has delivered. */
  pendingFeedback: string[];
  session: SessionSummary;
}

export interface StateCount {
  count: number;
  state: string;
  tone: TextTone;
}

export interface StateTime {
  ms: number;
  state: string;
}

/** The message after which a stream of events is up to date. */
export interface StreamReady {
  /** The position of the last event. */
  head: number;
}

export interface TaskDetails {
  /** The answers that a person can give now. */
  answers: string[];
  description: string | null;
  facts: LabelledText[];
  /** The whole goal; a summary has only its beginning. */
  goal: string;
  nextCommand: string | null;
  /** Newest first. */
  notes: TaskNote[];
  /** The sessions that worked on it, newest first. */
  sessions: SessionSummary[];
  task: TaskSummary;
}

export interface TaskGraphEdge {
  from: string;
  /** Whether `from` waits for `to`. */
  isDependency: boolean;
  kind: string;
  to: string;
}

export interface TaskGraphView {
  edges: TaskGraphEdge[];
  /** The task in the middle, if there is one. */
  focus: string | null;
  hasMore: boolean;
  tasks: TaskSummary[];
}

export interface TaskNote {
  at: number;
  author: string;
  kind: string;
  text: string;
}

export interface TaskPage {
  hasMore: boolean;
  tasks: TaskSummary[];
}

export interface TaskSummary {
  goal: string;
  /** Whether a change of the task is not merged yet. */
  hasChange: boolean;
  id: string;
  labels: string[];
  openDependencies: number;
  priority: string;
  /** The session that holds the task. */
  session: string | null;
  state: string;
  tone: TextTone;
  type: string | null;
  updatedAt: number;
}

export type TextTone = "plain" | "strong" | "faint" | "good" | "warning" | "bad" | "name";

export interface TimelineGroup {
  endedAt: number | null;
  items: TimelineItem[];
  /** Zero before the first iteration. */
  iteration: number;
  startedAt: number;
}

export interface TimelineItem {
  details: string[];
  /** The end; for a wait, the time of the next try, which may lie in the future. */
  endedAt: number | null;
  /** The type of its last event. */
  event: string;
  evidence: string[];
  isPending: boolean;
  kind: TimelineItemKind;
  relatedSeqs: number[];
  /** The position of its last event. */
  seq: number;
  /** The position of its first event. */
  startSeq: number;
  startedAt: number;
  /** The agent's answer, the message, or the feedback. */
  text: string | null;
  title: string;
  tone: TextTone;
}

export type TimelineItemKind = "turn" | "hook" | "gate" | "event" | "feedback" | "wait" | "message";

/** The message that a turn began; its lines follow. */
export interface TurnStart {
  seq: number;
}

/** The usage of some turns, and of the agents that hooks asked in them, as far as agents report it. */
export interface UsageTotals {
  /** In US dollars; absent if no agent reports a cost. */
  costUsd: number | null;
  inputTokens: number;
  outputTokens: number;
  /** The number of turns that ended, without those of hooks. For a session, the number of its iterations. */
  turns: number;
}

/** The viewer and the project. */
export interface ViewerInfo {
  /** The position of the last event. */
  head: number;
  name: string;
  project: string;
  projectPath: string;
  role: ViewerRole;
  version: string;
}

/** What a viewer may do. Each role includes the ones before it. */
export type ViewerRole = "look" | "answer" | "manage";

/** Something that only a person can decide. */
export interface WaitingItem {
  /** The answers that a person can give. */
  answers: string[];
  /** The output of the hooks that block. */
  evidence: string[];
  kind: WaitingKind;
  reason: string;
  session: string | null;
  since: number;
  task: string | null;
  title: string;
}

export type WaitingKind = "blocked_task" | "failed_task" | "gate_question" | "open_change";

export interface WhyFactView {
  at: number;
  /** The event that caused it. */
  causeSeq: number | null;
  details: string[];
  evidence: string[];
  isDecision: boolean;
  iteration: number | null;
  sentence: string;
  seq: number;
  session: string | null;
  task: string | null;
  tone: TextTone;
  type: string;
}

export interface WhyView {
  about: LabelledText[];
  /** Oldest first. */
  facts: WhyFactView[];
  kind: string;
  name: string;
  nextCommand: string | null;
  /** How many older facts were left out. */
  omitted: number;
  state: string;
  tone: TextTone;
}

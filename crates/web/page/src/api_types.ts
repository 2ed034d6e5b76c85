// Generated from the types of the server by the test `page_types_match_server`. Do not edit.

export interface AnswerBody {
  answer: AnswerChoice;
  /** A task, or a session that asks. */
  subject: string;
  text?: string | null;
}

/** An answer of a person. */
export const ANSWER_CHOICES = ["continue", "retry", "ignore-hook", "approve", "reject"] as const;
export type AnswerChoice = (typeof ANSWER_CHOICES)[number];
export const ANSWER_CHOICE_MEANINGS: Record<AnswerChoice, string> = {
  "continue": "The work goes on, and the agent reads your text first.",
  "retry": "The work goes on with your text, and all counts start again.",
  "ignore-hook": "The work goes on, and the hooks that block it do not count this once.",
  "approve": "The task is completed, whatever its gates say.",
  "reject": "The work ends, and the task has failed.",
};

/** The most that a session may use; without a limit if absent. */
export interface BudgetLimits {
  /** In US dollars. */
  costUsd: number | null;
  /** Tokens, read and written. */
  tokens: number | null;
}

export interface BudgetReport {
  /** The limits of the next session, as the configuration has them. */
  limits: BudgetLimits;
  /** The open sessions with a limit, newest first. */
  sessions: SessionBudget[];
}

export interface ChangeDetails {
  /** The answers that a person can give now. */
  answers: AnswerChoice[];
  /** Whether a person can merge the change now, or record its merge. */
  canMerge: boolean;
  change: ChangeSummary;
  checks: CheckResult[];
  /** A sentence about a diff that is not available. */
  diffProblem: string | null;
  /** Further facts about the work. */
  facts: LabelledText[];
  fileDiffs: FileDiff[];
  /** The findings of hooks and people, each with its source. */
  findings: LabelledText[];
  /** Whether git shows the change in its base, although the log has no merge of it. A merge then only records it. */
  hasLanded: boolean;
  /** Whether a part of the diff was left out. */
  isCut: boolean;
  /** The remote that a merge pushes to; none if it moves a local branch, if the forge merges, or if it is only recorded. */
  mergeRemote: string | null;
  /** The question that these answers are for. */
  question: OpenQuestion | null;
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
  /** Whether a person should look at it: it did not pass. */
  needsAttention: boolean;
  outcome: string;
  /** Its feedback, or else the last lines of its recorded output. */
  output: string[];
  seq: number;
  tone: TextTone;
}

/** What a person should know after a command. */
export interface CommandNotices {
  /** Warnings and notes, such as `warning: …`; absent if there are none. */
  notices?: string[];
}

export interface CostReport {
  /** The other rows are sorted by tokens, then by money, largest first. */
  agents: CostRow[];
  budgets: BudgetReport;
  /** Every day of the period, oldest first. */
  days: CostRow[];
  hookDurations: HookDuration[];
  /** Whether older events of the period were left out. */
  isCut: boolean;
  /** The types of events after which the report may be different. */
  sourceEvents: EventType[];
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
  /** Warnings and notes, such as `warning: …`; absent if there are none. */
  notices?: string[];
}

export const EVENT_TYPES = ["task_created", "task_ready", "task_waiting", "task_claimed", "lease_expired", "task_started", "task_updated", "completion_claimed", "workspace_opened", "submission_started", "task_submitted", "merge_started", "pipeline_failed", "task_rejected", "change_opened", "change_merged", "task_completed", "task_blocked", "task_unblocked", "task_answered", "task_needs_continuation", "task_released", "task_failed", "task_reopened", "task_deleted", "dependency_added", "dependency_removed", "dependency_satisfied", "agent_metrics", "auto_label_suggestion", "fact_logged", "note_added", "config_recorded", "session_started", "session_resumed", "session_stopping", "session_ended", "iteration_started", "turn_started", "conversation_opened", "turn_finished", "promise_detected", "gate_decided", "gate_answered", "iteration_completed", "iteration_failed", "iteration_interrupted", "iteration_postponed", "delivery_finished", "delivery_failed", "delivery_interrupted", "message_added", "feedback_queued", "feedback_delivered", "hook_registered", "hooks_cleared", "hook_switched", "hook_evaluated", "series_started", "validation_finished", "series_advanced", "series_ended", "checkpoint_created", "bridge_called", "bridge_answered", "workflow_triggered", "workflow_started", "workflow_step_started", "workflow_step_finished", "workflow_completed", "workflow_failed", "hook_started", "hook_retrying", "hook_finished", "hook_error", "action_error"] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export interface FileDiff {
  added: number;
  hunks: DiffHunk[];
  /** The former name of a renamed file. */
  oldPath: string | null;
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
  /** The agent that it is bound to. */
  agent: string | null;
  /** The runs that found something wrong with the work. */
  blocks: number;
  definedIn: string;
  /** Its command, URL or rules, in one line. */
  effect: string;
  /** The runs that failed themselves, with those that timed out or could not start. */
  errors: number;
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
  durationMs: number | null;
  /** The exit code of the program that the hook started; absent if it ended without one. */
  exitCode: number | null;
  /** The text that the agent would get. */
  feedback: string | null;
  hint: string | null;
  message: string | null;
  outcome: string | null;
  /** What the program wrote: standard output, then standard error. */
  output: string | null;
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
  /** The person or the agent who gave the command; empty for the runner of the session. */
  triggeredBy: string;
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

/** A question that a person can answer now. */
export interface OpenQuestion {
  /** The last message of the agent before it stopped. */
  message: string | null;
  /** The position of the event with the message. */
  messageSeq: number | null;
  /** The reason why the work does not go on; empty if none was given. */
  reason: string;
}

/** Lines of the output of a turn in progress. */
export interface OutputLines {
  lines: string[];
}

export interface QuestionAnswerBody {
  answer: AnswerChoice;
  text?: string | null;
}

/** A question with the project that it is about. */
export interface QuestionView {
  /** The answers that a person can give. */
  answers: AnswerChoice[];
  /** Whether a person can merge its change now. */
  canMerge: boolean;
  /** The output of the hooks that block. */
  evidence: string[];
  kind: WaitingKind;
  /** The last message of the agent before it stopped. */
  message: string | null;
  project: string;
  reason: string;
  session: string | null;
  since: number;
  task: string | null;
  title: string;
  tone: TextTone;
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

export interface SessionBudget {
  agent: string;
  /** The limits that the session was started with. */
  limits: BudgetLimits;
  session: string;
  task: string | null;
  usage: UsageTotals;
}

/** The outcome of an answer, or of another command about a session. */
export interface SessionOutcome {
  /** A sentence about what happens now. */
  outcome: string;
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
  /** The command that goes on with it, if no process runs it. */
  resumeCommand: string | null;
  /** A sentence that leads to this command. */
  resumeNote: string | null;
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
  answers: AnswerChoice[];
  groups: TimelineGroup[];
  /** Whether older events were left out. */
  isCut: boolean;
  /** Feedback that no finished turn has delivered. Messages of the timeline are items. */
  pendingFeedback: string[];
  /** The question that these answers are for. */
  question: OpenQuestion | null;
  session: SessionSummary;
}

export interface StateCount {
  count: number;
  state: TaskState;
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
  answers: AnswerChoice[];
  /** Whether a person can block the task without an override. */
  canBlock: boolean;
  /** Whether a person can edit the task. */
  canEdit: boolean;
  /** Whether a person can reopen the task without an override. */
  canReopen: boolean;
  description: string | null;
  facts: LabelledText[];
  /** The whole goal; a summary has only its beginning. */
  goal: string;
  nextCommand: string | null;
  /** Newest first. */
  notes: TaskNote[];
  /** The question that these answers are for. Its reason is no fact. */
  question: OpenQuestion | null;
  /** The sessions that worked on it, newest first. */
  sessions: SessionSummary[];
  task: TaskSummary;
}

export interface TaskGraphEdge {
  /** The task that waits, also of an edge `blocks`; else the first task of the edge. */
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

export const TASK_STATES = ["created", "ready", "active", "submitted", "completed", "blocked", "needs_continuation", "failed", "deleted"] as const;
export type TaskState = (typeof TASK_STATES)[number];

export interface TaskSummary {
  goal: string;
  /** Whether a change of the task is not merged yet. */
  hasChange: boolean;
  id: string;
  /** Whether no process runs this session, although it needs one. */
  isDeserted: boolean;
  labels: string[];
  openDependencies: number;
  priority: string;
  /** The session that holds the task. */
  session: string | null;
  state: TaskState;
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
  /** The task of the iteration, if the session takes several tasks. */
  task: string | null;
}

export interface TimelineItem {
  details: string[];
  /** The end; for a wait, the time of the next try, which may lie in the future. */
  endedAt: number | null;
  /** The type of its last event. */
  event: EventType;
  evidence: string[];
  isPending: boolean;
  kind: TimelineItemKind;
  /** Whether a person should look at it: it is a failure, or something that blocks or waits. */
  needsAttention: boolean;
  relatedSeqs: number[];
  /** The position of its last event. */
  seq: number;
  /** The position of its first event. */
  startSeq: number;
  startedAt: number;
  /** The agent's answer, or what it wrote before its turn was cut short; the message; the pieces of a delivery. */
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
export const VIEWER_ROLES = ["look", "answer", "manage"] as const;
export type ViewerRole = (typeof VIEWER_ROLES)[number];
export const VIEWER_ROLE_MEANINGS: Record<ViewerRole, string> = {
  "look": "Read everything.",
  "answer": "Answer questions, review changes, and speak to agents.",
  "manage": "Give every command that the page offers.",
};

/** Something that only a person can decide. */
export interface WaitingItem {
  /** The answers that a person can give. */
  answers: AnswerChoice[];
  /** Whether a person can merge its change now. */
  canMerge: boolean;
  /** The output of the hooks that block. */
  evidence: string[];
  kind: WaitingKind;
  /** The last message of the agent before it stopped. */
  message: string | null;
  reason: string;
  session: string | null;
  since: number;
  task: string | null;
  title: string;
  tone: TextTone;
}

export type WaitingKind = "blocked_task" | "failed_task" | "gate_question" | "open_change";

/** An event that led to the state of the subject of a report. */
export interface WhyCause {
  seq: number;
  /** The task of the event unless it is the subject, the type of the event, and its sentence. */
  text: string;
}

export interface WhyFactView {
  at: number;
  /** The events that caused it. A decision of a gate has each hook that blocked. */
  causeSeqs: number[];
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
  /** The event that set the state, then its causes, back to a command. */
  causes: WhyCause[];
  /** Oldest first. */
  facts: WhyFactView[];
  /** Whether more causes were left out. */
  hasMoreCauses: boolean;
  kind: string;
  name: string;
  nextCommand: string | null;
  /** How many older facts were left out. */
  omitted: number;
  state: string;
  tone: TextTone;
}

// What the agent said before it stopped with a question.

import { LongText } from "./text";

export function AgentMessage({ message }: { message: string | null }) {
  if (message === null) return null;
  return (
    <div class="agent-message">
      <p class="muted small">The agent's last message</p>
      <LongText text={message} maxLines={12} />
    </div>
  );
}

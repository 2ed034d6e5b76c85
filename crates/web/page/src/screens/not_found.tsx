import { EmptyState, ScreenHeader } from "../components";
import { Link } from "../router";

export function NotFoundScreen() {
  return (
    <>
      <ScreenHeader title="No such page" />
      <EmptyState title="This address names no screen of Windlass.">
        <p>
          Go to <Link to="/">Now</Link>, <Link to="/tasks">Tasks</Link> or <Link to="/sessions">Sessions</Link>.
        </p>
      </EmptyState>
    </>
  );
}

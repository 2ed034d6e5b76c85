// The login with a code that works once. The code stands in the fragment of the link, which no server and no proxy sees.

import { useEffect, useRef, useState } from "preact/hooks";

import { type ApiError, toApiError } from "../api_client";
import { Button, CommandLine, ErrorNotice, Logo, Spinner } from "../components";
import { navigate, route } from "../router";
import { loadViewer, logIn } from "../viewer";

/** Finds the code in what a person pastes: a link, or the code alone. */
function findCode(pasted: string): string {
  const text = pasted.trim();
  const marker = text.lastIndexOf("code=");
  return marker < 0 ? text : text.slice(marker + "code=".length);
}

export function LoginScreen({ code }: { code: string | null }) {
  const [pasted, setPasted] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setIsBusy] = useState(code !== null);
  const redeemed = useRef<string | null>(null);

  const redeem = async (given: string) => {
    setIsBusy(true);
    setError(null);
    try {
      await logIn(given);
      navigate(route.value.path === "/login" ? "/" : route.value.path, { replace: true });
    } catch (thrown) {
      // A used link does not lock out a browser that is logged in.
      const isLoggedIn = await loadViewer().then(() => true, () => false);
      if (isLoggedIn) {
        navigate("/", { replace: true });
        return;
      }
      setError(toApiError(thrown));
      setIsBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Log in · Windlass";
  }, []);
  useEffect(() => {
    // A code works once, so it is never sent twice.
    if (code === null || redeemed.current === code) return;
    redeemed.current = code;
    void redeem(code);
  }, [code]);

  const submit = (event: Event) => {
    event.preventDefault();
    if (pasted.trim() !== "" && !isBusy) void redeem(findCode(pasted));
  };
  return (
    <main class="lone-page">
      <div class="lone-brand">
        <Logo />
        <h1>Log in to Windlass</h1>
      </div>
      {isBusy && code !== null && error === null ? (
        <Spinner label="Logging in" />
      ) : (
        <>
          <ErrorNotice error={error} />
          <div class="stack">
            <div>
              <p class="login-step">1. Print a link in the terminal of the project:</p>
              <CommandLine command="windlass serve invite YOUR-NAME" />
            </div>
            <form class="text-form" onSubmit={submit}>
              <label for="login-code">2. Open the link, or paste it here:</label>
              <input
                id="login-code"
                type="text"
                value={pasted}
                autocomplete="off"
                autocapitalize="off"
                spellcheck={false}
                onInput={(event) => setPasted(event.currentTarget.value)}
              />
              <div>
                <Button type="submit" kind="primary" isBusy={isBusy}>
                  Log in
                </Button>
              </div>
            </form>
            <p class="muted small">A link works once and for a short time. This browser then stays logged in.</p>
          </div>
        </>
      )}
    </main>
  );
}

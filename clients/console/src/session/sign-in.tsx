import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useLayoutEffect, useRef } from "react";
import { useLocation, useSearchParams } from "wouter";
import { useAction } from "../parts/confirm-dialog.tsx";
import { Brand } from "../shell/frame.tsx";
import common from "../styles/common.module.css";
import styles from "../styles/shell.module.css";
import { returnPathOf } from "./return-path.ts";
import { fetchSignInOptions, oidcStartAddress, signIn } from "./session-api.ts";
import { beginSession } from "./session-end.ts";
import { describeRefusal, describeSignInError } from "./sign-in-errors.ts";

/** The sign-in page: an API key, or the OIDC issuer if the server has one. */
export function SignIn() {
  const [parameters] = useSearchParams();
  const returnPath = returnPathOf(parameters.get("return"));
  const options = useQuery({ queryKey: ["sign-in-options"], queryFn: fetchSignInOptions });
  useLayoutEffect(() => {
    document.title = "Sign in · Onceward";
  }, []);
  const reason = describeSignInError(parameters.get("error"));
  return (
    <main className={styles.signIn}>
      <h1>
        <Brand />
      </h1>
      <p>
        The console of your idempotency service: what was stopped, what is refused, and what waits for a
        person.
      </p>
      {reason !== undefined && (
        <p className={styles.reason} role="status">
          {reason}
        </p>
      )}
      <ApiKeyForm returnPath={returnPath} />
      {options.data?.oidc === true && (
        <p>
          <a href={oidcStartAddress(returnPath)}>Sign in with {options.data.issuer ?? "your issuer"}</a>
        </p>
      )}
    </main>
  );
}

function ApiKeyForm({ returnPath }: { readonly returnPath: string }) {
  const [, navigate] = useLocation();
  const queryClient = useQueryClient();
  const { error, waiting, run } = useAction();
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  // At first, and after a refusal.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a refusal moves the focus.
  useLayoutEffect(() => field.current?.focus(), [error]);

  async function enter(): Promise<void> {
    await signIn(field.current?.value.trim() ?? "");
    queryClient.clear();
    beginSession();
    navigate(returnPath, { replace: true });
  }
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!waiting) void run(enter);
  }

  return (
    <form onSubmit={submit}>
      <label htmlFor={id}>API key</label>
      <input
        ref={field}
        id={id}
        type="password"
        autoComplete="off"
        spellCheck={false}
        required
        maxLength={200}
        aria-invalid={error !== undefined}
        aria-describedby={`${id}-help ${id}-refusal`}
      />
      <p id={`${id}-help`} className={common.quiet}>
        An administrator's, which starts with <code>ow_</code>. After <code>npm start</code> it is in{" "}
        <code>.onceward/admin.key</code>; else an administrator creates one under API keys.
      </p>
      <p id={`${id}-refusal`} role="alert" className={common.problem}>
        {error !== undefined && describeRefusal(error)}
      </p>
      <button type="submit" aria-disabled={waiting}>
        {waiting ? "Signing in" : "Sign in"}
      </button>
    </form>
  );
}

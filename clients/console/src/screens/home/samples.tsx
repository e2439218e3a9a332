import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { CopyButton } from "../../parts/copy-button.tsx";
import { fetchSignInOptions } from "../../session/session-api.ts";
import common from "../../styles/common.module.css";
import styles from "../../styles/parts.module.css";

/** The programs by language. `grpc` is the server's address for clients, `http` the one of this page. */
const SAMPLES: Readonly<Record<string, (grpc: string, http: string) => string>> = {
  curl: (_, http) => `curl ${http}/onceward.v1.IdempotencyService/Claim \\
  -H 'content-type: application/json' -H "authorization: Bearer $ONCEWARD_API_KEY" \\
  -d '{"namespace": "charges", "key": "order-1"}'`,
  TypeScript: (grpc) => `// npm install @onceward/client
import { createOnceward } from "@onceward/client";

const onceward = createOnceward({ address: "${grpc}", apiKey: process.env.ONCEWARD_API_KEY });
const charge = await onceward.run(
  { namespace: "charges", key: "order-1" },
  async () => ({ charged: true }), // the effect: it runs once, and a duplicate gets its result
);`,
  Python: (grpc) => `# pip install onceward
import os
from onceward import Onceward

with Onceward("${grpc}", api_key=os.environ["ONCEWARD_API_KEY"]) as onceward:
    # The effect runs once, and a duplicate gets its result.
    charge = onceward.run("charges", "order-1", lambda claim: {"charged": True})`,
  Go: (
    grpc,
  ) => `client, err := onceward.New("${grpc}", onceward.Options{APIKey: os.Getenv("ONCEWARD_API_KEY")})
// The effect runs once, and a duplicate gets its result.
charge, err := onceward.Run(ctx, client, onceward.Operation{Namespace: "charges", Key: "order-1"},
	func(context.Context, *onceward.Claim) (string, error) { return "charged", nil })`,
};

/** The first claim as a program, with this server's addresses, in the language that a person chooses. */
export function Samples() {
  const [language, choose] = useState("curl");
  const { data } = useQuery({ queryKey: ["sign-in-options"], queryFn: fetchSignInOptions });
  const { origin, hostname, protocol } = window.location;
  const text = SAMPLES[language]?.(`${protocol}//${hostname}:${data?.grpcPort ?? 50_051}`, origin) ?? "";
  return (
    <section aria-label={language}>
      <div className={common.row}>
        {Object.keys(SAMPLES).map((each) => (
          <button
            key={each}
            type="button"
            className={styles.tab}
            aria-pressed={each === language}
            onClick={() => choose(each)}
          >
            {each}
          </button>
        ))}
        <CopyButton text={text} label={`Copy the ${language}`} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard. */}
      <pre className={common.text} tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}

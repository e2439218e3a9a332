import { Link } from "wouter";
import { CopyButton } from "../../parts/copy-button.tsx";
import common from "../../styles/common.module.css";

/** What a tenant does that has made no claim: with its own address. Home shows the claim as soon as it came. */
export function FirstClaim() {
  const { origin, hostname, protocol } = window.location;
  const curl = `curl ${origin}/onceward.v1.IdempotencyService/Claim \\
  -H 'content-type: application/json' -H "authorization: Bearer $ONCEWARD_API_KEY" \\
  -d '{"namespace": "charges", "key": "order-1"}'`;
  const script = `import { createOnceward } from "@onceward/client";

const onceward = createOnceward({
  address: "${protocol}//${hostname}:50051", // the port for gRPC, if it is another one
  apiKey: process.env.ONCEWARD_API_KEY,
});
const charge = await onceward.run(
  { namespace: "charges", key: "order-1", fingerprint: { amount: 500 } },
  async () => ({ charged: true }), // the effect: it runs once, and a duplicate gets its result
);`;
  return (
    <>
      <h2>Make your first claim</h2>
      <p>
        Services claim a key before an effect. They do it with a <Link href="/api-keys">caller's key</Link>:
        create one, and set <code>ONCEWARD_API_KEY</code> to it.
      </p>
      <Sample title="curl" text={curl} />
      <Sample title="TypeScript" text={script} />
      <p role="status" className={common.quiet}>
        Waiting for the first claim. It is shown here within 15 s.
      </p>
    </>
  );
}

function Sample({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <section aria-label={title}>
      <h3>
        {title} <CopyButton text={text} label={`Copy the ${title}`} />
      </h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard. */}
      <pre className={common.text} tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}

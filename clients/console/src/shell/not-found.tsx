import { Link } from "wouter";
import { Screen } from "./screen.tsx";

/** The screen of an address that is none. */
export function NotFound() {
  return (
    <Screen title="Not found">
      <p>
        There is no such page. <Link href="/">Go to the start</Link>.
      </p>
    </Screen>
  );
}

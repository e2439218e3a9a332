import { Screen } from "../../shell/screen.tsx";

/** The screen "Home". */
export default function Home() {
  return <Screen title="Home">{undefined}</Screen>;
}

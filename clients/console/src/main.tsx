import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { applyTheme } from "./parts/preferences.ts";
import { ROUTES } from "./routes.ts";
import { wasSignedIn } from "./session/session.ts";
import "./styles/global.css";

applyTheme();
// The screen's file is asked for together with who is signed in. A failure is shown where the screen is.
const asked = ROUTES.find(({ path }) => window.location.pathname === `/console${path}`);
if (wasSignedIn()) void asked?.load().catch(() => {});

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
createRoot(root).render(<App />);

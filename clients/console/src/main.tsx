import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { applyTheme } from "./parts/preferences.ts";
import "./styles/global.css";

applyTheme();

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
createRoot(root).render(<App />);

import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme-without-fonts";
import { defineAsyncComponent } from "vue";
import "./style.css";

/** The generator's own theme, with the playground, which only its page loads. */
const theme: Theme = {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component(
      "Playground",
      defineAsyncComponent(() => import("./Playground.vue")),
    );
  },
};

export default theme;

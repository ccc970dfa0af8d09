/* Loaded before the stylesheet and not as a module, so that the chosen theme is there at first paint. */
(() => {
  "use strict";
  const KEPT_S = 365 * 24 * 3600;
  const ORDER = ["system", "light", "dark"];
  const root = document.documentElement;
  root.dataset.js = "";

  // The same cookie as in choices.js, which is a module and so comes too late.
  function stored() {
    const value = document.cookie.match(/(?:^|; )interlock_theme=([a-z]+)/)?.[1];
    return ORDER.includes(value) ? value : "system";
  }

  function keep(theme) {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `interlock_theme=${theme}; Max-Age=${KEPT_S}; Path=/; SameSite=Lax${secure}`;
  }

  function apply(theme) {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
  }

  function label(button, theme) {
    button.setAttribute("aria-label", button.dataset[`label${theme[0].toUpperCase()}${theme.slice(1)}`]);
    for (const glyph of button.querySelectorAll("[data-theme-icon]")) {
      glyph.hidden = glyph.dataset.themeIcon !== theme;
    }
  }

  function show(theme) {
    apply(theme);
    document.querySelectorAll("[data-theme-cycle]").forEach((button) => label(button, theme));
  }

  apply(stored());
  document.addEventListener("DOMContentLoaded", () => show(stored()));
  // Another tab may have chosen meanwhile.
  document.addEventListener("visibilitychange", () => document.hidden || show(stored()));
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-cycle]")) return;
    const next = ORDER[(ORDER.indexOf(stored()) + 1) % ORDER.length];
    keep(next);
    show(next);
  });
})();

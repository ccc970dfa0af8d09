/* Loaded before the stylesheet and not as a module, so that the chosen theme is there at first paint. */
(() => {
  "use strict";
  const KEY = "interlock.theme";
  const ORDER = ["system", "light", "dark"];
  const root = document.documentElement;
  root.dataset.js = "";

  function stored() {
    try {
      const value = localStorage.getItem(KEY);
      return ORDER.includes(value) ? value : "system";
    } catch {
      return "system"; // storage may be forbidden
    }
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
  window.addEventListener("storage", (event) => event.key === KEY && show(stored()));
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-cycle]")) return;
    const next = ORDER[(ORDER.indexOf(stored()) + 1) % ORDER.length];
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // the choice then lasts for this page
    }
    show(next);
  });
})();

/* Forms: one submit at a time, Ctrl+Enter, first invalid field, tool-name confirmation, preset reasons. */
const SUBMITS = "button[type=submit], button:not([type]), input[type=submit]";

function block(form, submitter) {
  form.dataset.submitting = "";
  for (const button of form.querySelectorAll(SUBMITS)) {
    // Not `disabled`: the pressed button's name and value must still be sent.
    button.setAttribute("aria-disabled", "true");
    if (button === submitter) button.dataset.busy = "";
  }
}

function release(form) {
  delete form.dataset.submitting;
  for (const button of form.querySelectorAll(SUBMITS)) {
    button.removeAttribute("aria-disabled");
    delete button.dataset.busy;
  }
  for (const box of form.querySelectorAll("[data-confirm-text]")) match(box);
}

function onSubmit(event) {
  const form = event.target;
  const unconfirmed = event.submitter?.dataset.needsConfirm !== undefined && event.submitter.getAttribute("aria-disabled");
  if (form.getAttribute("method")?.toLowerCase() !== "post") return;
  if (form.dataset.submitting !== undefined || form.dataset.ended !== undefined || unconfirmed) {
    event.preventDefault();
    event.stopImmediatePropagation();
    form.querySelector("[data-confirm-text]")?.focus();
    return;
  }
  if (!event.defaultPrevented) block(form, event.submitter);
}

/* <input data-confirm-text="issue_refund"> frees the buttons with data-needs-confirm once the text is equal. */
function match(box) {
  const equal = box.value.trim() === box.dataset.confirmText;
  for (const button of box.form?.querySelectorAll("[data-needs-confirm]") ?? []) {
    if (equal) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
  }
}

function prepare(root) {
  for (const box of root.querySelectorAll?.("[data-confirm-text]") ?? []) match(box);
  if (!root.querySelector?.("[data-focus]")) root.querySelector?.("[aria-invalid=true]")?.focus();
}

export function start() {
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt?.closest?.("form");
    if (form) release(form);
  });
  // Coming back by the browser's back button must not find a dead form.
  window.addEventListener("pageshow", () => document.querySelectorAll("form[data-submitting]").forEach(release));
  document.addEventListener("input", (event) => {
    if (event.target.dataset?.confirmText !== undefined) match(event.target);
  });
  document.addEventListener("click", (event) => {
    const preset = event.target.closest?.("[data-fill]");
    const box = preset && document.querySelector(preset.dataset.fill);
    if (box) {
      box.value = preset.dataset.text ?? preset.textContent.trim();
      box.focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    const form = event.target.closest?.("form[data-ctrl-enter]");
    if (form) {
      event.preventDefault();
      form.requestSubmit(form.querySelector("[data-default-submit]") ?? form.querySelector(SUBMITS));
    }
  });
  document.addEventListener("htmx:afterSwap", (event) => prepare(event.detail.elt));
  prepare(document);
}

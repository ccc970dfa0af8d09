/* Sentences for the reader live in templates/components/words.html; this reads them by name. */
export function word(name, values = {}) {
  const template = document.getElementById("words");
  const entry = template?.content.querySelector(`[data-word="${name}"]`);
  let text = entry ? entry.textContent : "";
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`{${key}}`, String(value));
  return text;
}

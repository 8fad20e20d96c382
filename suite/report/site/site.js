// Search and filters of the index. Without this file every artifact is listed and the form stays hidden.
"use strict";
const form = document.getElementById("filters");
const rows = [...document.querySelectorAll("tr[data-claims]")].map((row) => ({
  row,
  paper: row.dataset.paper,
  claims: row.dataset.claims.split(";").map((claim) => claim.split("|")), // [verdict, grade, need]
  text: (row.textContent + " " + row.dataset.words).toLowerCase(),
}));

// A claim must meet all three choices at once: a reproduced one and another that needs a cluster are not one that does.
function meets(artifact, chosen) {
  const words = chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = [chosen.verdict, chosen.grade, chosen.need];
  return (
    (!chosen.paper || artifact.paper === chosen.paper) &&
    words.every((word) => artifact.text.includes(word)) &&
    (wanted.every((want) => !want) ||
      artifact.claims.some((claim) => wanted.every((want, i) => !want || claim[i] === want)))
  );
}

function show() {
  const chosen = Object.fromEntries(new FormData(form));
  let count = 0;
  for (const artifact of rows) {
    artifact.row.hidden = !meets(artifact, chosen);
    count += !artifact.row.hidden;
  }
  document.getElementById("count").textContent = `${count} of ${rows.length} artifacts`;
  const kept = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
  history.replaceState(null, "", kept.size ? `#?${kept}` : location.pathname);
}

function recall() {
  if (location.hash.startsWith("#?")) {
    const kept = new URLSearchParams(location.hash.slice(2));
    for (const field of form.querySelectorAll("[name]")) field.value = kept.get(field.name) ?? "";
  }
}

recall();
form.hidden = false;
form.addEventListener("input", show);
form.addEventListener("reset", () => setTimeout(show));
form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => { recall(); show(); });
if (location.hash.startsWith("#?")) show();

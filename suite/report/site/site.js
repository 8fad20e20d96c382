// Search and filters of the index, values and a larger size of figures. Without this file every artifact is listed, the
// form stays hidden, and figures are pictures.
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

if (form) {
  recall();
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { recall(); show(); });
  if (location.hash.startsWith("#?")) show();
}

// A figure tells the nearest point of its curves, and a click or the enter key enlarges it and brings it back.
const NEAR = 24; // pixels

function nearest(curves, box, event) {
  let [best, least] = [null, NEAR];
  for (const [label, nameX, nameY, points] of curves) {
    for (const [left, top, x, y] of points) {
      const place = [(left / 1e4) * box.width, (top / 1e4) * box.height];
      const far = Math.hypot(place[0] + box.left - event.clientX, place[1] + box.top - event.clientY);
      if (far < least) {
        least = far;
        best = { place, words: [label, nameX ? `${nameX}: ${x}` : x, nameY ? `${nameY}: ${y}` : y] };
      }
    }
  }
  return best;
}

for (const picture of document.querySelectorAll("img[data-curves]")) {
  const curves = JSON.parse(picture.dataset.curves);
  const told = document.createElement("div");
  told.className = "point";
  told.hidden = true;
  told.ariaHidden = "true"; // the same numbers are in the table of what is drawn
  told.append(document.createElement("span"));
  picture.after(told);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const found = nearest(curves, box, event);
    if (found) {
      told.firstChild.textContent = found.words.filter(Boolean).join(", ");
      told.classList.toggle("far", found.place[0] > box.width / 2);
      told.classList.toggle("low", found.place[1] > box.height / 2);
      told.style.left = `${picture.offsetLeft + found.place[0]}px`;
      told.style.top = `${picture.offsetTop + found.place[1]}px`;
    }
    told.hidden = !found; // shown in its place: elsewhere it could make room for a scroll bar
  });
  picture.addEventListener("pointerleave", () => { told.hidden = true; });
  const resize = () => {
    told.hidden = true;
    picture.style.width = picture.classList.toggle("large") ? `${2 * picture.naturalWidth}px` : "";
  };
  picture.addEventListener("click", resize);
  picture.parentElement.addEventListener("keydown", (event) => { if (event.key === "Enter") resize(); });
}

"use strict";
// What a script adds to a page that is complete without it. Nothing is stored, nothing is fetched.
(function () {
  const root = document.documentElement;
  const at = id => document.getElementById(id);

  // The theme button: a page opened anew follows the system.
  const theme = at("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const say = () => theme.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; say(); });
  system.addEventListener("change", say);
  theme.hidden = false;
  say();

  // On paper nothing can be opened: what was folded is printed open, and folded again afterwards.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach(part => { part.open = true; });
  });
  addEventListener("afterprint", () => {
    folded.forEach(part => { part.open = false; });
    delete root.dataset.print;
  });

  // One sheet for the committee: the answer and the findings, without the detail.
  const sheet = at("sheet");
  sheet.hidden = !document.querySelector(".sheet");
  sheet.addEventListener("click", () => { root.dataset.print = "sheet"; print(); });

  // A table of steps becomes a slider: one step at a time, the table stays under it.
  document.querySelectorAll(".steps").forEach((place, number) => {
    const table = place.nextElementSibling.querySelector("table");
    const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
    const slider = document.createElement("input"), label = document.createElement("label");
    const shown = document.createElement("dl");
    slider.type = "range";
    slider.max = rows.length - 1;
    slider.value = place.dataset.start;
    slider.id = `steps-${number}`;
    label.htmlFor = slider.id;
    label.textContent = place.dataset.caption;
    shown.className = "numbers";
    shown.setAttribute("aria-live", "polite");
    const show = () => {
      const cells = [...rows[slider.value].cells];
      slider.setAttribute("aria-valuetext", `${heads[0].textContent}: ${cells[0].textContent}`);
      shown.replaceChildren(...cells.map((cell, i) => {
        const pair = document.createElement("div");
        const term = document.createElement("dt"), value = document.createElement("dd");
        term.textContent = heads[i].textContent;
        value.append(...[...cell.childNodes].map(node => node.cloneNode(true)));
        pair.append(term, value);
        return pair;
      }));
    };
    slider.addEventListener("input", show);
    place.append(label, slider, shown);
    show();
  });
})();

"use strict";
// What makes waiting easier. Without it every page works: forms post, a running page reloads itself.
(function () {
  // Drop a file anywhere on the page; while it is copied, say how far it is.
  const form = document.querySelector("form.drop");
  if (form) {
    const input = form.querySelector("input[type=file]"), bar = form.querySelector("progress");
    const send = () => {
      const post = new XMLHttpRequest();
      bar.hidden = false;
      form.querySelector("button").disabled = true;
      post.upload.addEventListener("progress", e => { bar.value = 100 * e.loaded / e.total; });
      post.addEventListener("load", () => {
        if (post.status === 200) { location.assign(post.responseURL); return; }
        const told = new DOMParser().parseFromString(post.responseText, "text/html");
        document.querySelector("main").replaceChildren(...told.querySelector("main").children);
      });
      post.addEventListener("error", () => { location.reload(); });
      post.open("POST", form.action);
      post.send(new FormData(form));
    };
    form.addEventListener("submit", e => { e.preventDefault(); send(); });
    addEventListener("dragover", e => { e.preventDefault(); form.classList.add("over"); });
    addEventListener("dragleave", () => form.classList.remove("over"));
    addEventListener("drop", e => {
      e.preventDefault();
      form.classList.remove("over");
      if (e.dataTransfer.files.length) { input.files = e.dataTransfer.files; send(); }
    });
  }

  // A run that is going on: its last words, without a reload.
  const running = document.querySelector("section.running");
  if (running) {
    const part = name => running.querySelector(name);
    const ask = async () => {
      try {
        const told = await (await fetch(running.dataset.state)).json();
        if (told.state !== "running") { location.reload(); return; }
        if (typeof told.share === "number") part("progress").value = told.share;
        if (told.doing && part(".doing").textContent !== told.doing) part(".doing").textContent = told.doing;
        part(".since").textContent = told.since;
        part(".log").textContent = told.log;
      } catch { part(".doing").textContent = "dcem app does not answer. Start it again: you will find this run there."; }
      setTimeout(ask, 1000);
    };
    setTimeout(ask, 1000);
  }

  // Text to be copied.
  document.querySelectorAll(".same pre").forEach(text => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${text.getAttribute("aria-label")}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    });
    text.previousElementSibling.append(button);
  });
})();

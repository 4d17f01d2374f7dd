"use strict";
(() => {
  const [live, summary, copies, tail, count, answer] =
    ["live", "summary", "copies", "tail", "count", "answer"].map((id) => document.getElementById(id));
  const rows = new Map([...document.querySelectorAll(".copy")].map((row) => [row.dataset.name, row]));
  const focusable = "a, button, [tabindex]";
  const most = 200; // changes shown
  let ahead = 0; // of the server's clock
  let seen = 0; // changes
  const title = document.title;

  const duration = (seconds) => {
    const s = Math.max(0, Math.round(seconds));
    if (s < 120) return s + " s";
    if (s < 7200) return Math.round(s / 60) + " min";
    return s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " days";
  };
  const clock = (at) => new Date(at).toLocaleTimeString([], { hourCycle: "h23" });
  const age = () => {
    for (const time of document.querySelectorAll("time")) {
      const at = Date.parse(time.dateTime);
      const past = (Date.now() - ahead - at) / 1000;
      time.title = new Date(at).toLocaleString();
      if (time.className === "next") time.textContent = past < -0.5 ? "in " + duration(-past) : "now";
      else if (time.closest(".trouble")) time.textContent = clock(at) + " (" + duration(past) + ")";
      else time.textContent = duration(past) + " ago";
    }
  };
  const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  // replace keeps the focus at its place in the row.
  const replace = (name, html) => {
    const old = rows.get(name);
    const row = parsed(html);
    rows.set(name, row);
    if (!old) return;
    const at = [...old.querySelectorAll(focusable)].indexOf(document.activeElement);
    old.replaceWith(row);
    row.querySelectorAll(focusable)[at]?.focus({ preventScroll: true });
  };
  const arrange = (order) => {
    const wanted = new Set(order);
    for (const [name, row] of rows) {
      if (!wanted.has(name)) {
        row.remove();
        rows.delete(name);
      }
    }
    if (order.length) copies.querySelector(":scope > .none")?.remove();
    order.forEach((name, at) => {
      const row = rows.get(name);
      if (copies.children[at] === row) return;
      const focused = row.contains(document.activeElement) ? document.activeElement : null;
      copies.insertBefore(row, copies.children[at] || null);
      focused?.focus({ preventScroll: true });
    });
  };
  const element = (name, text, className) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const difference = async (row, button, number) => {
    const shown = row.querySelector("pre");
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) return shown.remove();
    const block = element("pre", "…");
    block.tabIndex = 0;
    row.append(block);
    try {
      block.textContent = await (await fetch("?difference=" + number)).text();
    } catch (error) {
      block.textContent = String(error);
    }
  };
  const change = (c) => {
    const row = element("li", "");
    row.append(element("span", clock(c.at)), element("span", c.op, c.op), element("span", c.copy), element("b", c.key));
    if (tail.dataset.differences === "true" && c.op === "modified") {
      const button = element("button", "Difference");
      button.setAttribute("aria-expanded", "false");
      button.addEventListener("click", () => difference(row, button, c.number));
      row.append(button);
    }
    return row;
  };
  const show = (frame) => {
    ahead = Date.now() - Date.parse(frame.at);
    if (frame.summary) {
      summary.innerHTML = frame.summary;
    }
    document.title = summary.querySelector(".verdict").classList.contains("synced") ? title : "(!) " + title;
    for (const [name, html] of Object.entries(frame.rows || {})) replace(name, html);
    if (frame.order) arrange(frame.order);
    if (frame.changes) {
      tail.querySelector(":scope > .none")?.remove();
      seen += frame.changes.length + (frame.left || 0);
      if (frame.left) tail.prepend(element("li", "and " + frame.left + " more", "none"));
      for (const c of frame.changes) tail.prepend(change(c));
      while (tail.children.length > most) tail.lastElementChild.remove();
      count.textContent = seen + " since the page was opened";
    }
    live.textContent = "live";
    document.body.classList.remove("lost");
    age();
  };
  const follow = () => {
    const source = new EventSource(location.pathname + location.search);
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.onerror = () => {
      live.textContent = "not connected: the page stands still";
      document.body.classList.add("lost");
      document.title = "(?) " + title;
      if (source.readyState === EventSource.CLOSED) setTimeout(follow, 5000); // such as 503
    };
  };
  document.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.hidden = false;
    answer.textContent = "Verifying: this takes as long as a list, and up to three minutes on a quiet server.";
    try {
      answer.textContent = await (await fetch(event.target.action, { method: "POST" })).text();
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  setInterval(age, 1000);
  age();
  follow();
})();

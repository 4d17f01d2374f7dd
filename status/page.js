"use strict";
const source = new EventSource(location.href);
const live = document.getElementById("live");
source.onmessage = (event) => {
  document.querySelector("main").innerHTML = event.data;
  live.textContent = "live";
};
source.onerror = () => { live.textContent = "not connected: the page stands still"; };

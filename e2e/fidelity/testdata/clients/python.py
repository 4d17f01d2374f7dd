"""Requests of python3-kubernetes, one line of output for each: KUBECONFIG, and the namespace NS."""
import json
import os

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client import ApiException
from kubernetes.stream import stream

NS = os.environ["NS"]
config.load_kube_config(os.environ["KUBECONFIG"])
api = client.ApiClient()
core, apps, custom = client.CoreV1Api(api), client.AppsV1Api(api), client.CustomObjectsApi(api)
WIDGETS = ("e2e.tributary.dev", "v1", NS, "widgets")


def step(name, do):
    """Prints what a step returned, or the client's own exception."""
    try:
        said = json.dumps(do(), sort_keys=True, default=str)
    except (ApiException, dynamic.exceptions.DynamicApiError, utils.FailToCreateError) as e:
        said = type(e).__name__ + " " + failure(e)
    print(name + ": " + " ".join(said.split()), flush=True)


def failure(e):
    if isinstance(e, utils.FailToCreateError):
        return "; ".join(failure(one) for one in e.api_exceptions)
    try:
        body = json.loads(e.body)
    except (TypeError, ValueError):
        return "%s" % (e.status or e.reason.split(" -")[0])  # of a web socket
    causes = [(c.get("reason"), c.get("field")) for c in body.get("details", {}).get("causes") or []]
    return "%s %s %s" % (e.status, body.get("reason"), causes)  # each server has its own words


def settings(name, **data):
    meta = client.V1ObjectMeta(name=name, labels={"app": "settings"})
    return client.V1ConfigMap(metadata=meta, data=data)


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}, "spec": dict(
        {"containers": [{"name": "web", "image": "registry.example/web:1"}]}, **spec)}


def deployment(name):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NS}, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}}}


def widget(name, **spec):
    return {"apiVersion": "e2e.tributary.dev/v1", "kind": "Widget",
            "metadata": {"name": name, "namespace": NS}, "spec": spec}


def names(answer):
    return [o.metadata.name for o in answer.items]


def events(of, until, **options):
    """The events of a watch until one of a type."""
    seen, watcher = [], watch.Watch()
    for event in watcher.stream(of, timeout_seconds=20, **options):
        kept = event["object"]
        name = kept["metadata"]["name"] if isinstance(kept, dict) else kept.metadata.name
        seen.append(event["type"] + " " + name)
        if event["type"] == until:
            watcher.stop()
    return seen


# Objects of a type, and the errors of their names, versions and fields.
step("create", lambda: core.create_namespaced_config_map(NS, settings("one", a="1")).data)
step("create twice", lambda: core.create_namespaced_config_map(NS, settings("one")).data)
step("create invalid", lambda: core.create_namespaced_config_map(NS, settings("Not A Name")).data)
step("create elsewhere", lambda: core.create_namespaced_config_map("nowhere", settings("one")).data)
step("dry run", lambda: core.create_namespaced_config_map(NS, settings("dry", a="1"), dry_run="All").data)
step("get", lambda: core.read_namespaced_config_map("one", NS).to_dict()["data"])
step("get none", lambda: core.read_namespaced_config_map("none", NS).data)
step("secret", lambda: core.create_namespaced_secret(NS, client.V1Secret(
    metadata=client.V1ObjectMeta(name="s"), string_data={"a": "b"})).to_dict()["data"])
old = core.read_namespaced_config_map("one", NS)
step("merge patch", lambda: core.patch_namespaced_config_map("one", NS, {"data": {"b": "2"}}).data)
step("json patch", lambda: core.patch_namespaced_config_map(
    "one", NS, [{"op": "replace", "path": "/data/a", "value": "3"}]).data)
step("json patch invalid", lambda: core.patch_namespaced_config_map(
    "one", NS, [{"op": "test", "path": "/data/a", "value": "4"}]).data)
step("replace old", lambda: core.replace_namespaced_config_map("one", NS, old).data)
step("replace", lambda: core.replace_namespaced_config_map("one", NS, settings("one", c="5")).data)

# Lists in pages, selectors, watches from a version.
for i in range(5):
    core.create_namespaced_config_map(NS, settings("page-%d" % i))


def pages():
    seen, token = [], ""
    while token is not None:
        page = core.list_namespaced_config_map(NS, label_selector="app=settings", limit=2, _continue=token)
        seen.append([names(page), page.metadata.remaining_item_count])
        token = page.metadata._continue or None
    return seen


step("pages", pages)
step("continue invalid", lambda: names(core.list_namespaced_config_map(NS, limit=2, _continue="abc")))
step("pages without selector", lambda: core.list_namespaced_config_map(NS, limit=2).metadata.remaining_item_count)
step("field selector", lambda: names(core.list_namespaced_config_map(NS, field_selector="metadata.name=one")))
step("field selector invalid", lambda: names(core.list_namespaced_config_map(NS, field_selector="data.a=b")))
step("label selector invalid", lambda: names(core.list_namespaced_config_map(NS, label_selector="a in b")))
version = core.list_namespaced_config_map(NS).metadata.resource_version
core.create_namespaced_config_map(NS, settings("seen", a="1"))
core.patch_namespaced_config_map("seen", NS, {"data": {"a": "2"}})
step("delete", lambda: core.delete_namespaced_config_map("seen", NS).status)
step("watch", lambda: events(core.list_namespaced_config_map, "DELETED", namespace=NS, resource_version=version))
step("watch version invalid", lambda: events(
    core.list_namespaced_config_map, "DELETED", namespace=NS, resource_version="abc"))
step("delete collection", lambda: core.delete_collection_namespaced_config_map(
    NS, label_selector="app=settings").status)
step("list", lambda: names(core.list_namespaced_config_map(NS, label_selector="app=settings")))

# A deployment: strategic patches, apply, scale, status.
step("create from a document", lambda: [o.metadata.name for o in utils.create_from_dict(api, deployment("front"))])
step("create from a document twice", lambda: utils.create_from_dict(api, deployment("front")))
step("strategic patch", lambda: [(c.name, c.image) for c in apps.patch_namespaced_deployment("front", NS, {
    "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.example/side:1"}]}}},
}).spec.template.spec.containers])
step("patch of a wrong type", lambda: apps.patch_namespaced_deployment("front", NS, {"spec": {"replicas": "x"}}).spec.replicas)
step("patch that is invalid", lambda: apps.patch_namespaced_deployment("front", NS, {"spec": {"replicas": -1}}).spec.replicas)
step("scale", lambda: apps.patch_namespaced_deployment_scale("front", NS, {"spec": {"replicas": 5}}).spec.replicas)
step("scale, read", lambda: apps.read_namespaced_deployment_scale("front", NS).to_dict()["spec"])
step("status", lambda: apps.patch_namespaced_deployment_status(
    "front", NS, {"status": {"replicas": 5}}).status.replicas)

# Pods: binding, logs, exec, eviction, grace.
step("pod", lambda: core.create_namespaced_pod(NS, pod("web")).status.phase)
step("logs", lambda: core.read_namespaced_pod_log("web", NS))
step("logs of no container", lambda: core.read_namespaced_pod_log("web", NS, container="none"))
step("logs of no pod", lambda: core.read_namespaced_pod_log("none", NS))
step("exec", lambda: stream(core.connect_get_namespaced_pod_exec, "web", NS, command=["ls"], stdout=True))
step("bind", lambda: core.create_namespaced_pod_binding("web", NS, client.V1Binding(
    metadata=client.V1ObjectMeta(name="web"), target=client.V1ObjectReference(kind="Node", name="node")),
    _preload_content=False).status)
step("bound", lambda: core.read_namespaced_pod("web", NS).spec.node_name)
step("pod status", lambda: core.patch_namespaced_pod_status("web", NS, {"status": {"phase": "Running"}}).status.phase)
step("delete with grace", lambda: core.delete_namespaced_pod(
    "web", NS, grace_period_seconds=7).metadata.deletion_grace_period_seconds)
step("evict", lambda: core.create_namespaced_pod_eviction("web", NS, client.V1Eviction(
    metadata=client.V1ObjectMeta(name="web"), delete_options=client.V1DeleteOptions(grace_period_seconds=0)),
    _preload_content=False).status)
step("evicted", lambda: core.read_namespaced_pod("web", NS).metadata.name)

# A custom resource, and the client that finds resources by discovery.
step("custom create", lambda: custom.create_namespaced_custom_object(*WIDGETS, widget("w"))["spec"])
step("custom invalid", lambda: custom.create_namespaced_custom_object(*WIDGETS, widget("v", color="pink")))
step("custom scale of nothing", lambda: custom.get_namespaced_custom_object_scale(*WIDGETS, "w"))
step("custom patch", lambda: custom.patch_namespaced_custom_object(
    *WIDGETS, "w", {"spec": {"color": "blue", "replicas": 3}})["spec"])
step("custom scale", lambda: custom.get_namespaced_custom_object_scale(*WIDGETS, "w")["spec"])
step("custom list", lambda: [o["spec"] for o in custom.list_namespaced_custom_object(*WIDGETS)["items"]])
step("custom watch", lambda: events(lambda **k: custom.list_namespaced_custom_object(*WIDGETS, **k), "ADDED"))
step("custom delete", lambda: custom.delete_namespaced_custom_object(*WIDGETS, "w")["status"])
step("custom none", lambda: custom.get_namespaced_custom_object(*WIDGETS, "w"))
step("custom resource unknown", lambda: custom.list_cluster_custom_object("none.example", "v1", "nones"))

found = dynamic.DynamicClient(api, cache_file=os.path.join(os.environ["HOME"], "discovery"))
widgets = found.resources.get(api_version="e2e.tributary.dev/v1", kind="Widget")
deployments = found.resources.get(api_version="apps/v1", kind="Deployment")


def apply(resource, body, manager, **options):
    # This release of the client sends YAML as a text alone.
    return resource.server_side_apply(
        body=json.dumps(body), name=body["metadata"]["name"], namespace=NS, field_manager=manager, **options).to_dict()


step("apply", lambda: apply(widgets, widget("w", replicas=1), "one")["spec"])
step("apply by another", lambda: apply(widgets, widget("w", replicas=2), "two")["spec"])
step("apply by force", lambda: apply(widgets, widget("w", replicas=2), "two", force_conflicts=True)["spec"])
step("apply an unknown field", lambda: apply(deployments, {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "front"}, "spec": {"none": 1}}, "one"))
step("dynamic merge patch", lambda: widgets.patch(
    {"spec": {"color": "green"}}, "w", NS, content_type="application/merge-patch+json").to_dict()["spec"])
step("dynamic strategic patch", lambda: widgets.patch({"spec": {"color": "green"}}, "w", NS).to_dict()["spec"])
step("dynamic get", lambda: widgets.get("none", NS))
step("dynamic watch", lambda: [e["type"] for e in widgets.watch(NS, timeout=1)])
step("dynamic delete", lambda: widgets.delete("w", NS).status)
step("resources", lambda: sorted(r.name for r in core.get_api_resources().resources if "/" not in r.name))
step("groups", lambda: "apps" in [g.name for g in client.ApisApi(api).get_api_versions().groups])
step("access", lambda: client.AuthorizationV1Api(api).create_self_subject_access_review({"spec": {
    "resourceAttributes": {"verb": "get", "resource": "pods"}}}).status.allowed)

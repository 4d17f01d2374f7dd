package podapi

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of the C library's resolver.
const (
	maxNameservers  = 3
	maxSearches     = 32
	maxSearchLength = 2048
	maxHostname     = 64
)

// network checks the pod's names, and its resolver's configuration.
func (v *validator) network() {
	if v.spec.Hostname != "" {
		v.messages(specPath.Child("hostname"), validation.IsDNS1123Label(v.spec.Hostname))
	}
	if v.spec.Subdomain != "" {
		v.messages(specPath.Child("subdomain"), validation.IsDNS1123Label(v.spec.Subdomain))
	}
	v.hostnameOverride()
	for i, alias := range v.spec.HostAliases {
		at := specPath.Child("hostAliases").Index(i)
		v.ip(alias.IP, at.Child("ip"))
		for j, hostname := range alias.Hostnames {
			v.messages(at.Child("hostnames").Index(j), validation.IsDNS1123Subdomain(hostname))
		}
	}
	if v.spec.HostNetwork {
		v.portsOfHost()
	}
	setOneOf(&v.faults, specPath.Child("dnsPolicy"), v.spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	v.dnsConfig(v.spec.DNSConfig, specPath.Child("dnsConfig"))
}

func (v *validator) ip(address string, at *field.Path) {
	v.adopt(validation.IsValidIPForLegacyField(at, address, true, nil))
}

func (v *validator) hostnameOverride() {
	hostname, at := v.spec.HostnameOverride, specPath.Child("hostnameOverride")
	if hostname == nil {
		return
	}
	if v.spec.SetHostnameAsFQDN != nil && *v.spec.SetHostnameAsFQDN {
		v.forbidden(at, "excludes setHostnameAsFQDN")
	}
	if v.spec.HostNetwork {
		v.forbidden(at, "excludes hostNetwork")
	}
	if len(*hostname) > maxHostname {
		v.tooLong(at, fmt.Sprintf("may have %d characters", maxHostname))
	}
	v.messages(at, validation.IsDNS1123Subdomain(*hostname))
}

// portsOfHost requires equal ports inside and outside in the host's network.
func (v *validator) portsOfHost() {
	for i := range v.spec.Containers {
		for j, port := range v.spec.Containers[i].Ports {
			if port.HostPort != 0 && port.HostPort != port.ContainerPort {
				v.invalid(specPath.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort"),
					"must be the containerPort in the host's network")
			}
		}
	}
}

func (v *validator) dnsConfig(config *corev1.PodDNSConfig, at *field.Path) {
	if v.spec.DNSPolicy == corev1.DNSNone && config == nil {
		v.required(at, "dnsPolicy None needs it")
		return
	}
	if config == nil {
		return
	}
	if v.spec.DNSPolicy == corev1.DNSNone && len(config.Nameservers) == 0 {
		v.required(at.Child("nameservers"), "dnsPolicy None needs one")
		return
	}
	if len(config.Nameservers) > maxNameservers {
		v.invalid(at.Child("nameservers"), fmt.Sprintf("may be %d", maxNameservers))
	}
	for i, nameserver := range config.Nameservers {
		v.ip(nameserver, at.Child("nameservers").Index(i))
	}
	if len(config.Searches) > maxSearches || len(strings.Join(config.Searches, " ")) > maxSearchLength {
		v.invalid(at.Child("searches"), fmt.Sprintf("may be %d, with %d characters together", maxSearches, maxSearchLength))
	}
	for i, search := range config.Searches {
		if search != "." {
			v.messages(at.Child("searches").Index(i),
				validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(search, ".")))
		}
	}
	for i, option := range config.Options {
		v.notEmpty(at.Child("options").Index(i), option.Name)
	}
}

package podapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	minTokenSeconds      = 10 * 60
	maxTokenSeconds      = 1 << 32
	minCertificate       = 60 * 60
	maxCertificate       = 91 * 24 * 60 * 60
	maxCertificateOfKube = 24 * 60 * 60
)

// projection checks one projected volume, whose sources all write into one directory.
type projection struct {
	*validator
	at    *field.Path
	paths sets.Set[string]
}

func (v *validator) projected(volume *corev1.ProjectedVolumeSource, at *field.Path) {
	v.fileMode(volume.DefaultMode, at.Child("defaultMode"))
	v.newerDefaultUser(at)
	p := projection{validator: v, at: at, paths: sets.New[string]()}
	for i := range volume.Sources {
		p.source(&volume.Sources[i], at.Child("sources").Index(i))
	}
}

func (p projection) source(source *corev1.VolumeProjection, at *field.Path) {
	set := 0
	if source.Secret != nil {
		set++
		p.keys(source.Secret.Name, source.Secret.Items, at.Child("secret"))
	}
	if source.ConfigMap != nil {
		set++
		p.keys(source.ConfigMap.Name, source.ConfigMap.Items, at.Child("configMap"))
	}
	if source.DownwardAPI != nil {
		set++
		for i, file := range source.DownwardAPI.Items {
			p.downwardFile(file, at.Child("downwardAPI"), at.Child("downwardAPI", "items").Index(i))
			p.claim(file.Path)
		}
	}
	if source.ServiceAccountToken != nil {
		set++
		p.token(source.ServiceAccountToken, at.Child("serviceAccountToken"))
	}
	if source.ClusterTrustBundle != nil {
		set++
		p.trustBundle(source.ClusterTrustBundle, at.Child("clusterTrustBundle"))
	}
	if source.PodCertificate != nil {
		set++
		p.certificate(source.PodCertificate, at.Child("podCertificate"))
	}
	if set > 1 {
		p.forbidden(at, "has more than one source")
	}
}

// claim reserves a path for one source, and faults the volume if another source has it.
func (p projection) claim(path string) {
	if path == "" {
		return
	}
	if p.paths.Has(path) {
		p.invalid(p.at, "has two sources with one path")
	}
	p.paths.Insert(path)
}

func (p projection) keys(name string, items []corev1.KeyToPath, at *field.Path) {
	p.notEmpty(at.Child("name"), name)
	for i, item := range items {
		p.keyToPath(item, at.Child("items").Index(i))
		p.claim(item.Path)
	}
}

func (p projection) token(token *corev1.ServiceAccountTokenProjection, at *field.Path) {
	if seconds := token.ExpirationSeconds; seconds != nil && (*seconds < minTokenSeconds || *seconds > maxTokenSeconds) {
		p.invalid(at.Child("expirationSeconds"), "must be between 10 minutes and 2^32 seconds")
	}
	if p.notEmpty(p.at.Child("path"), token.Path) {
		p.fileName(token.Path, p.at.Child("path"))
	}
	p.newerUser(at, at)
}

func (p projection) trustBundle(bundle *corev1.ClusterTrustBundleProjection, at *field.Path) {
	switch {
	case bundle.Name != nil && bundle.SignerName != nil:
		p.invalid(at, "has both name and signerName")
	case bundle.Name != nil:
		p.notEmpty(at.Child("name"), *bundle.Name)
		p.trustBundleName(*bundle.Name, at.Child("name"))
		if bundle.LabelSelector != nil {
			p.invalid(at.Child("labelSelector"), "cannot stand beside name")
		}
	case bundle.SignerName != nil:
		p.notEmpty(at.Child("signerName"), *bundle.SignerName)
		p.signerName(*bundle.SignerName, at.Child("signerName"))
		p.adopt(metav1validation.ValidateLabelSelector(bundle.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{}, at.Child("labelSelector")))
	default:
		p.required(at, "needs name or signerName")
	}
	p.notEmpty(at.Child("path"), bundle.Path)
	p.fileName(bundle.Path, at.Child("path"))
	p.claim(bundle.Path)
	p.newerUser(at, at)
}

// trustBundleName checks the name of a bundle, which begins with its signer's name if it has one.
func (v *validator) trustBundleName(name string, at *field.Path) {
	end := strings.LastIndex(name, ":")
	if end >= 0 && (end == 0 || strings.Contains(name[:end], "/")) {
		v.invalid(at, "must begin with a signer's name, with ':' instead of '/'")
		return
	}
	v.messages(at, validation.NameIsDNSSubdomain(name[end+1:], false))
}

func (p projection) certificate(certificate *corev1.PodCertificateProjection, at *field.Path) {
	p.signerName(certificate.SignerName, at.Child("signerName"))
	for key := range certificate.UserAnnotations {
		p.adopt(utilvalidation.IsDomainPrefixedKey(at.Child("userAnnotations"), strings.ToLower(key)))
	}
	if validation.ValidateAnnotationsSize(certificate.UserAnnotations) != nil {
		p.tooLong(at.Child("userAnnotations"), "may have 256 KiB together")
	}
	oneOf(&p.faults, at.Child("keyType"), certificate.KeyType,
		"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
	if seconds := certificate.MaxExpirationSeconds; seconds != nil {
		longest := int32(maxCertificate)
		domain, _, _ := strings.Cut(certificate.SignerName, "/")
		if domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			longest = maxCertificateOfKube
		}
		if *seconds < minCertificate || *seconds > longest {
			p.invalid(at.Child("maxExpirationSeconds"), "must be between an hour and 91 days, or a day with a signer of Kubernetes")
		}
	}
	files := 0
	for name, path := range map[string]string{
		"credentialBundlePath": certificate.CredentialBundlePath,
		"keyPath":              certificate.KeyPath,
		"certificateChainPath": certificate.CertificateChainPath,
	} {
		if path != "" {
			files++
			p.fileName(path, at.Child(name))
			p.claim(path)
		}
	}
	if files == 0 {
		p.required(at, "needs credentialBundlePath, keyPath or certificateChainPath")
	}
	p.newerUser(at, at)
}

// signerName requires a domain and a path: example.com/signer.
func (v *validator) signerName(name string, at *field.Path) {
	if !v.notEmpty(at, name) {
		return
	}
	const maxDomain = utilvalidation.DNS1123SubdomainMaxLength
	const maxPath = utilvalidation.DNS1123SubdomainMaxLength + utilvalidation.DNS1123LabelMaxLength + 1
	domain, path, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(path, "/") {
		v.invalid(at, "must be a domain and a path, as in example.com/signer")
		return
	}
	if len(domain) > maxDomain || len(name) > maxDomain+1+maxPath {
		v.tooLong(at, "is too long for a signer's name")
	}
	if !strings.Contains(domain, ".") {
		v.invalid(at, "must be a domain of two segments or more")
	}
	for label := range strings.SplitSeq(domain, ".") {
		v.messages(at, utilvalidation.IsDNS1123Label(label))
	}
	for label := range strings.SplitSeq(path, ".") {
		v.messages(at, utilvalidation.IsDNS1123Subdomain(label))
	}
}

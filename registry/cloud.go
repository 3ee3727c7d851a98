package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic"
	ecrlogin "github.com/awslabs/amazon-ecr-credential-helper/ecr-login/api"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/google"
)

// cloudTimeout is for a machine outside the cloud, where nobody answers for the
// metadata service.
const cloudTimeout = 15 * time.Second

// cloud is a provider whose credential is made in process.
type cloud struct {
	name   string
	covers func(host string) bool
	get    func(ctx context.Context, host string) (login, error)
}

func clouds() []cloud {
	return []cloud{
		{"Google application default credentials", isGoogle, googleCredential},
		{"the AWS credential chain", isECR, ecrCredential},
	}
}

func isGoogle(host string) bool {
	return host == "gcr.io" || strings.HasSuffix(host, ".gcr.io") || strings.HasSuffix(host, ".pkg.dev")
}

func googleCredential(ctx context.Context, _ string) (login, error) {
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	auth, err := google.NewEnvAuthenticator(ctx)
	if err != nil {
		auth, err = google.NewGcloudAuthenticator(ctx)
	}
	if err != nil || auth == authn.Anonymous {
		return login{}, errNothing
	}
	value, err := authn.Authorization(ctx, auth)
	if err != nil {
		return login{}, errors.New("no token came of them")
	}
	return *value, nil
}

func isECR(host string) bool {
	_, err := ecrlogin.ExtractRegistry(host)
	return err == nil
}

// ecrCredential asks ECR for a password of twelve hours. The SDK is called rather
// than the helper's Get: that one writes the password to disk, hides the cause of
// a failure, takes no context and panics on a broken AWS configuration.
func ecrCredential(ctx context.Context, host string) (login, error) {
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	registry, err := ecrlogin.ExtractRegistry(host)
	if err != nil {
		return login{}, err
	}
	options := []func(*config.LoadOptions) error{config.WithRegion(registry.Region)}
	if registry.Service == ecrlogin.ServiceECRPublic {
		options = []func(*config.LoadOptions) error{config.WithRegion("us-east-1")} // the only one that issues them
	}
	if registry.FIPS {
		options = append(options, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	settings, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return login{}, errors.New("the AWS configuration cannot be read")
	}
	if _, err := settings.Credentials.Retrieve(ctx); err != nil {
		return login{}, errNothing
	}
	token, err := ecrToken(ctx, settings, registry)
	if err != nil {
		return login{}, errors.New("GetAuthorizationToken was refused (it needs ecr:GetAuthorizationToken)")
	}
	decoded, err := base64.StdEncoding.DecodeString(token)
	user, password, found := strings.Cut(string(decoded), ":")
	if err != nil || !found {
		return login{}, errors.New("GetAuthorizationToken gave no user and password")
	}
	return login{Username: user, Password: password}, nil
}

func ecrToken(ctx context.Context, settings aws.Config, registry *ecrlogin.Registry) (string, error) {
	if registry.Service == ecrlogin.ServiceECRPublic {
		out, err := ecrpublic.NewFromConfig(settings).GetAuthorizationToken(ctx, &ecrpublic.GetAuthorizationTokenInput{})
		if err != nil || out.AuthorizationData == nil {
			return "", errors.Join(err, errNothing)
		}
		return aws.ToString(out.AuthorizationData.AuthorizationToken), nil
	}
	out, err := ecr.NewFromConfig(settings).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil || len(out.AuthorizationData) == 0 {
		return "", errors.Join(err, errNothing)
	}
	return aws.ToString(out.AuthorizationData[0].AuthorizationToken), nil
}

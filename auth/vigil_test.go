package auth

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// watching gives a channel that is closed at the end of p.
func watching(p Principal) (ended <-chan struct{}, stop func()) {
	end := make(chan struct{})
	return end, p.Watch(func() { close(end) })
}

func requireEnd(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		require.Fail(t, "it was not told of its end")
	}
}

// TestAWatcherHearsOfARotation that no call has given away.
func TestAWatcherHearsOfARotation(t *testing.T) {
	r, _ := rotating(t)
	p, err := r.Verify(r.token(t, exp(24*time.Hour)))
	require.NoError(t, err)
	ended, stop := watching(p)
	defer stop()
	unheard, stopped := watching(p)
	stopped()
	require.False(t, p.Ended())

	require.NoError(t, RotateSecret(r.path, 0))
	requireEnd(t, ended)
	require.True(t, p.Ended())
	stop()

	late, stop := watching(p)
	defer stop()
	requireEnd(t, late)
	select {
	case <-unheard:
		require.Fail(t, "it had stopped")
	default:
	}
	require.Empty(t, p.key.vigils)
	require.Zero(t, r.vigils.count)
}

// TestAWatcherLastsAsLongAsTheOldSecret is kept, and no longer.
func TestAWatcherLastsAsLongAsTheOldSecret(t *testing.T) {
	r, _ := rotating(t)
	p, err := r.Verify(r.token(t, exp(24*time.Hour)))
	require.NoError(t, err)
	ended, stop := watching(p)
	defer stop()
	require.NoError(t, RotateSecret(r.path, time.Hour))
	require.Eventually(t, func() bool { _, ends := p.key.end(); return ends }, 20*time.Second, 10*time.Millisecond)
	require.False(t, p.Ended())

	until := time.Now().Add(3 * time.Second)
	require.NoError(t, RotateSecret(r.path, 3*time.Second))
	requireEnd(t, ended)
	require.False(t, time.Now().Before(until))
}

func TestAWatcherHearsOfItsTokensEnd(t *testing.T) {
	r, _ := rotating(t)
	p, err := r.Verify(r.token(t, exp(3*time.Second)))
	require.NoError(t, err)
	ended, stop := watching(p)
	defer stop()
	requireEnd(t, ended)
	require.False(t, time.Now().Before(p.ExpiresAt))
	require.True(t, p.Ended())
}

func TestAWatcherHearsThatItsKeyWasRemoved(t *testing.T) {
	stays, goes := ecSigner(t, "stays"), edSigner(t, "goes")
	path := jwksFileOf(t, stays, goes)
	r := newRig(t, trusting(path), func(c *Config) { c.Now = time.Now })
	var ends []<-chan struct{}
	for _, s := range []signer{goes, stays} {
		p, err := r.Verify(r.by(t, s, jwt.MapClaims{"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}))
		require.NoError(t, err)
		ended, stop := watching(p)
		t.Cleanup(stop)
		ends = append(ends, ended)
	}
	replace(t, path, document(t, stays), 0o644)
	requireEnd(t, ends[0])
	select {
	case <-ends[1]:
		require.Fail(t, "its key is still there")
	default:
	}
	require.NoError(t, r.SetJWKS(""))
	requireEnd(t, ends[1])
}

func TestAnInventedPrincipalHasEnded(t *testing.T) {
	require.True(t, Principal{}.Ended())
	ended, stop := watching(Principal{})
	defer stop()
	requireEnd(t, ended)
}
